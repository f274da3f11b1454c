package dev.espha.broker;

import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ControllerRequestContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Has the active controller fence brokers that have ended. */
final class Fences {

  private static final Logger LOG = LoggerFactory.getLogger(Fences.class);

  private final Controller controller;
  /** Brokers that were fenced since they were last heard of, and in which epoch. */
  private final Map<Integer, Long> fenced = new ConcurrentHashMap<>();

  Fences(Controller controller) {
    this.controller = controller;
  }

  /**
   * Has a broker fenced once, and asks again only where the controller has refused.
   *
   * <p>Should it live after all, it will be back with its next heartbeat.
   */
  void ask(int broker, long epoch) {
    Long before = fenced.put(broker, epoch);
    if (before != null && before == epoch) {
      return;
    }
    LOG.info("broker {} is fenced", broker);
    asked(broker, epoch)
        .exceptionally(
            failed -> {
              LOG.info("broker {} is not fenced", broker, failed);
              fenced.remove(broker, epoch);
              return null;
            });
  }

  /** Forgets a broker that is there again: its next end is another one. */
  void forget(int broker) {
    fenced.remove(broker);
  }

  private CompletableFuture<?> asked(int broker, long epoch) {
    RequestHeaderData header =
        new RequestHeaderData()
            .setRequestApiKey(ApiKeys.BROKER_HEARTBEAT.id)
            .setRequestApiVersion(ApiKeys.BROKER_HEARTBEAT.latestVersion());
    ControllerRequestContext context =
        new ControllerRequestContext(header, KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
    BrokerHeartbeatRequestData request =
        new BrokerHeartbeatRequestData()
            .setBrokerId(broker)
            .setBrokerEpoch(epoch)
            .setCurrentMetadataOffset(-1)
            .setWantFence(true);
    try {
      return controller.processBrokerHeartbeat(context, request);
    } catch (RuntimeException refused) {
      // thrown by who is elected, and not active for some milliseconds yet
      return CompletableFuture.failedFuture(refused);
    }
  }
}
