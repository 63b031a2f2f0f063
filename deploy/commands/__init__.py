"""One module per command of mqtwin. `deploy.cli` lists the commands and imports a module when its command runs."""
