package dev.espha.broker;

import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.LoggingSignalHandler;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A Kafka broker, as {@code kafka.Kafka} starts it, with {@link Lifelines} to the others. */
public final class Broker {

  private static final Logger LOG = LoggerFactory.getLogger(Broker.class);

  private Broker() {}

  /** Runs a broker until it is asked to end; the one argument is its file of properties. */
  public static void main(String[] arguments) throws Exception {
    Properties given = Utils.loadProps(arguments[0]);
    KafkaConfig config = new KafkaConfig(given, false);
    KafkaRaftServer server = new KafkaRaftServer(config, Time.SYSTEM);
    new LoggingSignalHandler().register();
    Exit.addShutdownHook("kafka-shutdown-hook", () -> shutDown(server));
    try {
      server.startup();
    } catch (Throwable failed) {
      LOG.error("the broker cannot start", failed);
      Exit.exit(1);
    }
    try {
      new Lifelines(config, server).begin();
    } catch (ReflectiveOperationException | RuntimeException unknown) {
      LOG.warn("no lifelines: the deaths of other brokers are noticed by timeout only", unknown);
    }
    server.awaitShutdown();
    Exit.exit(0);
  }

  private static void shutDown(KafkaRaftServer server) {
    try {
      server.shutdown();
    } catch (Throwable failed) {
      LOG.error("the broker does not end in order", failed);
      Exit.halt(1);
    }
  }
}
