package dev.espha.broker;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketTimeoutException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import jdk.net.ExtendedSocketOptions;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.server.SharedServer;
import org.apache.kafka.common.message.EndQuorumEpochRequestData;
import org.apache.kafka.common.message.EndQuorumEpochRequestData.PartitionData;
import org.apache.kafka.common.message.EndQuorumEpochRequestData.TopicData;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.raft.KafkaRaftClient;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.QuorumConfig;
import org.apache.kafka.raft.RaftRequest;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A connection to each other broker, which its kernel closes when its process ends.
 *
 * <p>Kafka itself notices a death when a heartbeat or a fetch is overdue. A broker whose lifeline
 * is closed, and whose port refuses the next one, has ended; so its duties go to others at once:
 *
 * <ul>
 *   <li>If it was the active controller, each one that is left is told what it would have said at
 *       an orderly end: that its epoch is over. They then elect another.
 *   <li>The active controller gets the heartbeat that the broker would have sent at an orderly end:
 *       that it wants to be fenced. Others then lead its partitions, and nobody waits for its copy.
 * </ul>
 *
 * <p>Both are requests of Kafka's own protocol, which change nothing about what is certain: an
 * election that nobody needed costs a moment, and a broker that lives is back with its next
 * heartbeat. A broker that is frozen or cut off closes nothing, and is missed after the timeout.
 */
final class Lifelines {

  private static final Logger LOG = LoggerFactory.getLogger(Lifelines.class);
  private static final int CONNECT_MS = 125;
  private static final int AGAIN_MS = 100;
  private static final int KEEP_ALIVE_S = 5;
  private static final int KEEP_ALIVE_COUNT = 3;
  private static final int LOOK_MS = 10;
  private static final int HEIR_WAITS_MS = 100;
  private static final int TIMEOUT_IS_NEAR_MS = 1000;
  private static final short END_EPOCH_VERSION = 0;
  private static final String METADATA = "__cluster_metadata";

  private final int own;
  private final Map<Integer, InetSocketAddress> voters;
  private final ListenerName listener;
  private final KafkaRaftClient<?> raft;
  private final Controller controller;
  private final MetadataCache metadata;
  private final Fences fences;
  /** Brokers that have ended, and since when in ms. */
  private final Map<Integer, Long> ended = new ConcurrentHashMap<>();
  private final Semaphore changed = new Semaphore(0);
  private long told;

  /** Takes from a server that has started what is needed. */
  Lifelines(KafkaConfig config, KafkaRaftServer server) throws ReflectiveOperationException {
    own = config.nodeId();
    voters = QuorumConfig.parseVoterConnections(config.quorumConfig().voters());
    listener = new ListenerName(config.controllerListenerNames().get(0));
    raft = ((SharedServer) field(server, "sharedServer")).raftManager().client();
    controller = ((ControllerServer) optional(server, "controller")).controller();
    fences = new Fences(controller);
    metadata = ((BrokerServer) optional(server, "broker")).metadataCache();
  }

  private static Object field(KafkaRaftServer server, String name)
      throws ReflectiveOperationException {
    var field = KafkaRaftServer.class.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(server);
  }

  private static Object optional(KafkaRaftServer server, String name)
      throws ReflectiveOperationException {
    return ((scala.Option<?>) field(server, name)).get();
  }

  /** Holds the lifelines from now on, in threads of their own. */
  void begin() {
    voters.forEach(
        (broker, address) -> {
          if (broker != own) {
            start("lifeline-" + broker, () -> hold(broker, address));
          }
        });
    start("lifelines", this::act);
  }

  private static void start(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }

  private void hold(int broker, InetSocketAddress named) {
    while (true) {
      try {
        // its address may have changed: the name is looked up again
        Socket line = connected(new InetSocketAddress(named.getHostString(), named.getPort()));
        while (line != null) {
          line = renewed(broker, line);
        }
      } catch (ConnectException refused) {
        hasEnded(broker); // nobody listens; before now it may never have been heard of here
      } catch (IOException unreachable) {
        LOG.debug("no lifeline to broker {}", broker, unreachable);
      }
      pause(AGAIN_MS);
    }
  }

  /**
   * Waits until a lifeline is closed; returns the next one, or null when the broker has ended, or is
   * out of reach.
   */
  private Socket renewed(int broker, Socket line) {
    ended.remove(broker);
    fences.forget(broker);
    SocketAddress address = line.getRemoteSocketAddress();
    if (!isClosed(line)) {
      LOG.info("the lifeline to broker {} has gone dead", broker);
      return null;
    }
    try {
      Socket next = connectedAtLast(address);
      LOG.info("the lifeline to broker {} is renewed", broker);
      return next;
    } catch (IOException gone) {
      LOG.info("broker {} has ended", broker);
      hasEnded(broker);
      return null;
    }
  }

  private void hasEnded(int broker) {
    if (ended.putIfAbsent(broker, now()) == null) {
      changed.release();
    }
  }

  /** Connects, and once more where nobody answered: a packet may have been lost. */
  private static Socket connectedAtLast(SocketAddress address) throws IOException {
    try {
      return connected(address);
    } catch (SocketTimeoutException silent) {
      return connected(address);
    }
  }

  private static Socket connected(SocketAddress address) throws IOException {
    Socket socket = new Socket();
    try {
      socket.connect(address, CONNECT_MS);
      // a machine that is gone closes nothing, and a lifeline says nothing
      socket.setKeepAlive(true);
      socket.setOption(ExtendedSocketOptions.TCP_KEEPIDLE, KEEP_ALIVE_S);
      socket.setOption(ExtendedSocketOptions.TCP_KEEPINTERVAL, KEEP_ALIVE_S);
      socket.setOption(ExtendedSocketOptions.TCP_KEEPCOUNT, KEEP_ALIVE_COUNT);
      return socket;
    } catch (IOException failed) {
      closed(socket);
      throw failed;
    }
  }

  /** Waits until a lifeline ends; says whether the other side has closed it. */
  private static boolean isClosed(Socket line) {
    try {
      while (line.getInputStream().read() >= 0) {
        continue;
      }
      return true;
    } catch (IOException ended) {
      LOG.debug("a lifeline is reset, or nobody answers on it", ended);
      return String.valueOf(ended.getMessage()).contains("reset");
    } finally {
      closed(line);
    }
  }

  private static void closed(Socket socket) {
    try {
      socket.close();
    } catch (IOException alreadyGone) {
      LOG.debug("a socket does not close", alreadyGone);
    }
  }

  private void act() {
    while (true) {
      if (ended.isEmpty()) {
        changed.acquireUninterruptibly();
      }
      for (Map.Entry<Integer, Long> each : ended.entrySet()) {
        int broker = each.getKey();
        try {
          actOn(broker, each.getValue());
        } catch (RuntimeException failed) {
          LOG.warn("cannot act on the end of broker {}", broker, failed);
          pause(AGAIN_MS);
        }
      }
      pause(LOOK_MS);
    }
  }

  private void actOn(int broker, long since) {
    LeaderAndEpoch leads = raft.leaderAndEpoch();
    if (leads.isLeader(broker)) {
      long begin = since + (isHeir() ? HEIR_WAITS_MS : 0);
      if (now() >= Math.max(begin, told + AGAIN_MS) && now() < since + TIMEOUT_IS_NEAR_MS) {
        told = now();
        endEpoch(broker, leads.epoch());
      }
    } else if (controller.isActive()) {
      metadata.getAliveBrokerEpoch(broker).ifPresent(epoch -> fences.ask(broker, epoch));
    }
  }

  /**
   * Says whether this broker is to be elected: of those that live, the one with the highest number,
   * since the one with the lowest leads all topics.
   *
   * <p>A voter that has just followed gives nobody its vote before it has stood itself. So the heir
   * stands last: those who stood before it vote for it, and do not stand again for a while.
   */
  private boolean isHeir() {
    return voters.keySet().stream().allMatch(each -> each <= own || ended.containsKey(each));
  }

  /** Tells this voter that the controller's epoch is over, so that it stands for election now. */
  private void endEpoch(int broker, int epoch) {
    LOG.info("broker {} was the active controller, in epoch {}", broker, epoch);
    PartitionData partition =
        new PartitionData()
            .setLeaderId(broker)
            .setLeaderEpoch(epoch)
            .setPreferredSuccessors(List.of(own));
    TopicData topic = new TopicData().setTopicName(METADATA).setPartitions(List.of(partition));
    EndQuorumEpochRequestData data = new EndQuorumEpochRequestData().setTopics(List.of(topic));
    raft.handle(
        new RaftRequest.Inbound(listener, 0, END_EPOCH_VERSION, data, Time.SYSTEM.milliseconds()));
  }

  private static long now() {
    return System.nanoTime() / 1_000_000;
  }

  private static void pause(int milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException ending) {
      Thread.currentThread().interrupt();
    }
  }
}
