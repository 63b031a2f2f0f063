"""Everything around the streaming job: the command line, Java, jars, an embedded broker, a container image.

- :mod:`deploy.cli`: the command ``mqtwin``
- :mod:`deploy.commands`: one module per command
- :mod:`deploy.show`: tables, lines and pictures for a terminal
- :mod:`deploy.java.runtime`: a Java that runs Spark and Kafka
- :mod:`deploy.java.jars`: the jars of Spark's Kafka connector and of the broker, by coordinates and SHA-256
- :mod:`deploy.java.broker`: a real Kafka broker as a child process
- :mod:`deploy.run.supervisor`: restarts of ``mqtwin stream``
- :mod:`deploy.doctor`: the examination of this machine
"""
