"""How mqtwin is started: the command line, Java, jars, the embedded broker, images.

- :mod:`deploy.cli`: the command ``mqtwin``
- :mod:`deploy.java`: a Java that Spark and Kafka can run on
- :mod:`deploy.jars`: the jars of Spark's Kafka connector and of the broker, by coordinates and SHA-256
- :mod:`deploy.broker`: a real Kafka broker as a child process
- :mod:`deploy.doctor`: what this machine has and what it lacks
"""
