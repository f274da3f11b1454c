package dev.espha.broker;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;

/**
 * Has three brokers in this JVM do what brokers do, so that an archive of its classes has them all.
 *
 * <p>They commit transactions and are read; the one that leads goes, another one leads, and the
 * first comes back. A broker that has never led would else load and check hundreds of classes at
 * the very moment when everybody waits for it.
 */
public final class Rehearsal {

  private static final String TOPIC = "rehearsal";
  private static final TopicPartition PARTITION = new TopicPartition(TOPIC, 0);
  private static final int COMMITS = 100;
  private static final int LOOK_MS = 50;
  private static final int STANDSTILL_MS = 120_000;

  private final List<KafkaConfig> configs = new ArrayList<>();
  private final List<KafkaRaftServer> servers = new ArrayList<>();
  private final Properties clients = new Properties();
  private final Admin admin;
  private volatile long done;
  private int sent;

  private Rehearsal(String[] files) throws IOException {
    List<String> addresses = new ArrayList<>();
    for (String file : files) {
      Properties given = Utils.loadProps(file);
      addresses.add(given.getProperty("advertised.listeners").replace("PLAINTEXT://", ""));
      configs.add(new KafkaConfig(given, false));
    }
    clients.putAll(
        Map.of(
            "bootstrap.servers", String.join(",", addresses),
            "transactional.id", TOPIC,
            "isolation.level", "read_committed",
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false"));
    Properties asking = new Properties();
    asking.put("bootstrap.servers", clients.get("bootstrap.servers"));
    admin = Admin.create(asking);
  }

  /** Runs it; the arguments are the brokers' files of properties, with formatted volumes. */
  public static void main(String[] files) {
    try {
      Rehearsal rehearsal = new Rehearsal(files);
      Thread limit = new Thread(rehearsal::endAtStandstill, "limit");
      limit.setDaemon(true);
      limit.start();
      rehearsal.run();
    } catch (Exception failed) {
      failed.printStackTrace();
      Exit.halt(1);
    }
    Exit.exit(0);
  }

  /** Ends the JVM when nothing has been done for long; a busy machine takes its time. */
  private void endAtStandstill() {
    long before = -1;
    while (done != before) {
      before = done;
      Utils.sleep(STANDSTILL_MS);
    }
    System.err.println("the rehearsal stands still at step " + done);
    Exit.halt(1);
  }

  private void run() throws Exception {
    for (KafkaConfig config : configs) {
      servers.add(new KafkaRaftServer(config, Time.SYSTEM));
    }
    // none is up before most of its quorum is
    List<Thread> starts = servers.stream().map(server -> new Thread(server::startup)).toList();
    starts.forEach(Thread::start);
    for (Thread start : starts) {
      start.join();
      done++;
    }
    for (int each = 0; each < servers.size(); each++) {
      new Lifelines(configs.get(each), servers.get(each)).begin();
    }
    List<Integer> replicas = configs.stream().map(KafkaConfig::nodeId).toList();
    admin.createTopics(Set.of(new NewTopic(TOPIC, Map.of(0, replicas)))).all().get();
    commit();
    read();
    servers.get(0).shutdown();
    servers.get(0).awaitShutdown();
    done++;
    commit();
    servers.set(0, new KafkaRaftServer(configs.get(0), Time.SYSTEM));
    servers.get(0).startup();
    done++;
    await(() -> partition().isr().size() == servers.size());
    admin.electLeaders(ElectionType.PREFERRED, Set.of(PARTITION)).all().get();
    await(() -> partition().leader().id() == replicas.get(0));
    commit();
    read();
    admin.close(); // and no end in order of the brokers: the last ones would look for the others
  }

  /** Fences, aborts and commits. */
  private void commit() throws InterruptedException, ExecutionException {
    ByteArraySerializer bytes = new ByteArraySerializer();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(clients, bytes, bytes)) {
      producer.initTransactions();
      producer.beginTransaction();
      producer.send(new ProducerRecord<>(TOPIC, 0, null, new byte[1])).get();
      producer.abortTransaction();
      for (int each = 0; each < COMMITS; each++) {
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(TOPIC, 0, null, new byte[each])).get();
        producer.commitTransaction();
        sent++;
        done++;
      }
    }
  }

  private void read() {
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(clients, bytes, bytes)) {
      consumer.assign(List.of(PARTITION));
      int found = 0;
      while (found < sent) {
        int more = consumer.poll(Duration.ofMillis(LOOK_MS)).count();
        found += more;
        done += more;
      }
    }
  }

  private TopicPartitionInfo partition() throws InterruptedException, ExecutionException {
    var topics = admin.describeTopics(Set.of(TOPIC)).allTopicNames().get();
    return topics.get(TOPIC).partitions().get(0);
  }

  /** A question that asks brokers. */
  private interface Question {
    boolean isSo() throws InterruptedException, ExecutionException;
  }

  private static void await(Question question) throws InterruptedException, ExecutionException {
    while (!question.isSo()) {
      Thread.sleep(LOOK_MS);
    }
  }
}
