package dev.espha;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.internals.Sender;
import org.apache.kafka.common.utils.Utils;

/**
 * Lets a producer pause behind each failed connection to its transaction coordinator.
 *
 * <p>While the coordinator is away, and the brokers that are left still name it, Kafka's producer
 * asks them for it again at once, without its retry.backoff.ms: up to 3,000 times a second, which
 * takes from brokers the processor time that those that start need.
 */
final class Paced implements InvocationHandler {

  private static final long PAUSE_MS = 20;

  private final KafkaClient client;

  private Paced(KafkaClient client) {
    this.client = client;
  }

  /** Makes a producer pause; there is no setting for it, so what it holds is replaced. */
  static void pace(KafkaProducer<?, ?> producer) {
    try {
      Object sender = field(KafkaProducer.class, "sender").get(producer);
      Field held = field(Sender.class, "client");
      Paced paced = new Paced((KafkaClient) held.get(sender));
      Class<?>[] shape = {KafkaClient.class};
      held.set(sender, Proxy.newProxyInstance(KafkaClient.class.getClassLoader(), shape, paced));
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Kafka's client is not of the version that espha brings", e);
    }
  }

  private static Field field(Class<?> of, String name) throws NoSuchFieldException {
    Field field = of.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    Object answer;
    try {
      answer = method.invoke(client, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
    if (method.getName().equals("connectionFailed") && Boolean.TRUE.equals(answer)) {
      Utils.sleep(PAUSE_MS);
    }
    return answer;
  }
}
