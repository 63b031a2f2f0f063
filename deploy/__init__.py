"""Everything around the streaming job: the command line, Java, jars, an embedded broker, metrics, a console.

- :mod:`deploy.cli`: the command ``mqtwin``
- :mod:`deploy.commands`: one module per command, and nothing else
- :mod:`deploy.options`: options that several commands share
- :mod:`deploy.demo`: the story of ``mqtwin demo``
- :mod:`deploy.bridge`: delivery of alerts to Alertmanager and to a command
- :mod:`deploy.console`: the page in the browser
- :mod:`deploy.metrics`: the exporter
- :mod:`deploy.show`: documents, and how a terminal and an HTML page show them
- :mod:`deploy.java`: a Java, its jars and class archives, a real Kafka broker as a child process
- :mod:`deploy.supervisor`: restarts of ``mqtwin stream``
"""

__distribution__ = "mqtwin"  # read by twin/base/installed.py
