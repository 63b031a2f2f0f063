"""One module a command; :data:`deploy.cli.COMMANDS` names them."""
