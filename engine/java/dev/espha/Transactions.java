package dev.espha;

import dev.espha.TransactionFailed.Why;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Transactions under one id, of which only the newest holder can commit.
 *
 * <p>All that are open in this JVM are known, so that {@link #end} ends what a dead engine process
 * has left under way: a fence that came late would shut out the successor.
 *
 * <p>One thread at a time uses an instance.
 */
final class Transactions implements Outputs {

  /** Number of the partition that is written; the others do not exist. */
  private static final int PARTITION = 0;

  private static final String ID = "transactional.id";
  private static final String VERSION = "transaction.version";
  private static final String ASKS_MS = "3000";
  private static final int WARM_RECORDS = 6;
  private static final List<String> WARM_HEADERS = List.of("id");
  private static final Map<Integer, Transactions> OPEN = new ConcurrentHashMap<>();
  private static final AtomicInteger LAST_NUMBER = new AtomicInteger();

  /** By which {@link #numbered} finds it. */
  final int number = LAST_NUMBER.incrementAndGet();

  private final String id;
  private final KafkaProducer<byte[], byte[]> producer;
  private boolean begun;
  private KafkaException failure;

  /** Makes a holder of an id, which can do nothing before it has fenced the others. */
  Transactions(Properties properties) {
    id = properties.getProperty(ID);
    producer =
        new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    Tuned.tune(producer, id);
    OPEN.put(number, this);
  }

  /** Finds an instance that is open. */
  static Transactions numbered(int number) {
    Transactions found = OPEN.get(number);
    if (found == null) {
      throw new IllegalStateException("no such transactions are open");
    }
    return found;
  }

  /** Ends all that are open, with whatever is under way. */
  static void end() {
    Rehearsal.end();
    for (Transactions each : List.copyOf(OPEN.values())) {
      each.close();
    }
  }

  /** Returns the version of transactions that the brokers have agreed on. */
  static int version(Properties properties) throws InterruptedException, TransactionFailed {
    Properties shared = new Properties();
    shared.putAll(properties);
    shared.remove(ID);
    try (Admin admin = Admin.create(shared)) {
      FinalizedVersionRange found =
          admin.describeFeatures().featureMetadata().get().finalizedFeatures().get(VERSION);
      return found == null ? 0 : found.maxVersionLevel();
    } catch (KafkaException | ExecutionException e) {
      throw failed("asking for versions", properties.getProperty(ID), e);
    }
  }

  /** Learns now who leads these topics, rather than in the first transaction. */
  void learn(Collection<String> topics) throws TransactionFailed {
    try {
      for (String topic : topics) {
        producer.partitionsFor(topic);
      }
    } catch (KafkaException e) {
      throw failed("asking for the leaders", id, e);
    }
  }

  /** Commits, so that the code is warm where it matters. */
  void rehearse(String topic) throws InterruptedException, TransactionFailed {
    for (int each = 1; each < WARM_RECORDS; each++) {
      send(topic, new byte[each], WARM_HEADERS, List.of(new byte[each]));
    }
    commit(topic, new byte[WARM_RECORDS], 0, Long.MAX_VALUE);
  }

  /**
   * Shuts out every earlier holder of the id; what they left open is aborted when this returns.
   *
   * <p>It can be done once.
   */
  void fence() throws TransactionFailed {
    try {
      producer.initTransactions();
    } catch (KafkaException | IllegalStateException e) {
      throw failed("fencing", id, e);
    }
  }

  /** Adds a record to the transaction; what goes wrong is told by {@link #commit}. */
  @Override
  public void send(String topic, byte[] value, List<String> names, List<byte[]> values) {
    List<Header> headers = new ArrayList<>(values.size());
    for (int place = 0; place < values.size(); place++) {
      headers.add(new RecordHeader(names.get(place), values.get(place)));
    }
    send(topic, value, headers);
  }

  private Future<RecordMetadata> send(String topic, byte[] value, Iterable<Header> headers) {
    if (failure != null) {
      return null;
    }
    try {
      if (!begun) {
        producer.beginTransaction();
        begun = true;
      }
      Future<RecordMetadata> sent =
          producer.send(new ProducerRecord<byte[], byte[]>(topic, PARTITION, null, value, headers));
      // Else each further record of a topic that is gone would wait for it once more.
      failure = failureOf(sent);
      return sent;
    } catch (KafkaException e) {
      failure = e;
      return null;
    }
  }

  /** Returns why a record was not taken at all; null: it was, as far as is known. */
  private static KafkaException failureOf(Future<RecordMetadata> sent) {
    if (sent.isDone()) {
      try {
        sent.get();
      } catch (ExecutionException e) {
        return new KafkaException(e.getCause());
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
    return null;
  }

  /**
   * Ends the transaction with one more record, if that gets an offset that was expected.
   *
   * <p>Anything else says that the log has lost its end, or goes on behind what was read of it: a
   * broker that is cut off from the others may take itself for the leader, and hide the rest.
   *
   * @param least the least offset that the record may get
   * @param most the largest one
   * @return the record's offset
   */
  long commit(String topic, byte[] value, long least, long most)
      throws InterruptedException, TransactionFailed {
    try {
      Future<RecordMetadata> sent = send(topic, value, List.of());
      if (failure != null) {
        throw failure;
      }
      producer.flush();
      long offset = sent.get().offset();
      if (offset < least || offset > most) {
        throw misplaced(topic, offset, least);
      }
      producer.commitTransaction();
      begun = false;
      return offset;
    } catch (KafkaException | IllegalStateException | ExecutionException e) {
      throw failed("commit", id, e);
    }
  }

  private static TransactionFailed misplaced(String topic, long offset, long due) {
    String what = offset < due ? "has lost its end" : "goes on behind what was read of it";
    String text = "topic %s %s: an order record has got offset %d, and %d was due; not committed";
    return new TransactionFailed(
        String.format(Locale.ROOT, text, topic, what, offset, due), Why.UNKNOWN, null);
  }

  private static TransactionFailed failed(String doing, String id, Throwable cause) {
    Why why = Why.UNKNOWN;
    for (Throwable each = cause; each != null; each = each.getCause()) {
      if (each instanceof ProducerFencedException
          || each instanceof InvalidProducerEpochException) {
        why = Why.FENCED;
      } else if (each instanceof RecordTooLargeException) {
        why = Why.TOO_LARGE;
      }
    }
    String text = doing + " under transactional id '" + id + "': " + Texts.of(cause);
    return new TransactionFailed(text, why, cause);
  }

  /** Ends it at once; brokers abort what is open. */
  void close() {
    OPEN.remove(number);
    producer.close(Duration.ZERO);
  }

  /** Returns the ids that have a transaction open on a topic. */
  static List<String> openOn(Properties properties, String topic)
      throws InterruptedException, TransactionFailed {
    Properties shared = new Properties();
    shared.putAll(properties);
    shared.remove(ID);
    shared.put("default.api.timeout.ms", ASKS_MS); // a broker that is gone would be waited for
    shared.put("request.timeout.ms", ASKS_MS);
    try (Admin admin = Admin.create(shared)) {
      return Held.on(admin, topic, PARTITION);
    } catch (KafkaException | ExecutionException e) {
      throw failed("asking for open transactions", properties.getProperty(ID), e);
    }
  }

  /** Who has a transaction open. */
  private static final class Held {
    private Held() {}

    static List<String> on(Admin admin, String topic, int partition)
        throws InterruptedException, ExecutionException {
      var place = new org.apache.kafka.common.TopicPartition(topic, partition);
      var open = new ArrayList<Long>();
      for (var state :
          admin.describeProducers(List.of(place)).partitionResult(place).get().activeProducers()) {
        if (state.currentTransactionStartOffset().isPresent()) {
          open.add(state.producerId());
        }
      }
      var ids = new ArrayList<String>();
      for (var listing : admin.listTransactions().all().get()) {
        if (open.contains(listing.producerId())) {
          ids.add(listing.transactionalId());
        }
      }
      return ids;
    }
  }
}
