package dev.espha.broker;

import java.lang.reflect.Proxy;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.errors.NotControllerException;
import org.apache.kafka.controller.Controller;

/** Asks for fences while a controller is elected but not active; prints how often it was asked. */
final class SlowlyActive {

  private static final int ASKED = 6;

  public static void main(String[] arguments) {
    AtomicInteger calls = new AtomicInteger();
    Controller controller =
        (Controller)
            Proxy.newProxyInstance(
                Controller.class.getClassLoader(),
                new Class<?>[] {Controller.class},
                (proxy, method, given) -> {
                  return switch (calls.incrementAndGet()) {
                    case 1 -> throw new NotControllerException("elected, not yet active");
                    case 2 -> CompletableFuture.failedFuture(new NotControllerException("either"));
                    default -> new CompletableFuture<>();
                  };
                });
    Fences fences = new Fences(controller);
    for (int time = 0; time < ASKED; time++) {
      fences.ask(1, 7);
    }
    System.out.println("until it is fenced: " + calls.getAndSet(ASKED));
    fences.forget(1);
    fences.ask(1, 7);
    System.out.println("behind its next end: " + (calls.get() - ASKED));
  }
}
