package dev.espha;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.internals.Sender;
import org.apache.kafka.clients.producer.internals.TransactionManager;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.requests.FindCoordinatorRequest.CoordinatorType;
import org.apache.kafka.common.utils.Utils;

/**
 * Two things for which Kafka's producer has no settings; it stands before the producer's network.
 *
 * <p>It connects to the transaction coordinator as soon as that is known, and again whenever the
 * connection is gone: a fence costs one round trip then, and not four.
 *
 * <p>It lets the producer pause behind each failed connection to the coordinator. While that is
 * away, and the brokers that are left still name it, the producer asks them for it again at once,
 * without its retry.backoff.ms: up to 3,000 times a second, which takes from brokers that start
 * the processor time that they need.
 */
final class Tuned implements InvocationHandler {

  private static final long PAUSE_MS = 20;

  private final KafkaClient client;
  private final TransactionManager transactions;
  private final Method coordinator;

  private Tuned(KafkaClient client, TransactionManager transactions)
      throws ReflectiveOperationException {
    this.client = client;
    this.transactions = transactions;
    coordinator = method("coordinator", CoordinatorType.class);
  }

  /**
   * Tunes a producer, and has it look for its coordinator.
   *
   * @param producer a new one
   * @param id its transactional id
   */
  static void tune(KafkaProducer<?, ?> producer, String id) {
    try {
      Object sender = field(KafkaProducer.class, "sender").get(producer);
      Object manager = field(KafkaProducer.class, "transactionManager").get(producer);
      Field held = field(Sender.class, "client");
      Tuned tuned = new Tuned((KafkaClient) held.get(sender), (TransactionManager) manager);
      Class<?>[] shape = {KafkaClient.class};
      held.set(sender, Proxy.newProxyInstance(KafkaClient.class.getClassLoader(), shape, tuned));
      method("lookupCoordinator", CoordinatorType.class, String.class)
          .invoke(manager, CoordinatorType.TRANSACTION, id);
      tuned.client.wakeup();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Kafka's client is not of the version that espha brings", e);
    }
  }

  private static Field field(Class<?> of, String name) throws NoSuchFieldException {
    Field field = of.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  private static Method method(String name, Class<?>... parameters) throws NoSuchMethodException {
    Method method = TransactionManager.class.getDeclaredMethod(name, parameters);
    method.setAccessible(true);
    return method;
  }

  /** Passes a call on; the thread of the producer makes nearly all of them. */
  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    boolean polls = method.getName().equals("poll");
    if (polls) {
      Node node = (Node) coordinator.invoke(transactions, CoordinatorType.TRANSACTION);
      if (node != null) {
        client.ready(node, (long) arguments[1]);
      }
    }
    Object answer;
    try {
      answer = method.invoke(client, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
    if (!polls && method.getName().equals("connectionFailed") && Boolean.TRUE.equals(answer)) {
      Utils.sleep(PAUSE_MS);
    }
    return answer;
  }
}
