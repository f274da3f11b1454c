package dev.espha;

import java.util.List;

/** Takes a model's outputs; it names no class of Kafka, which a run on files does without. */
interface Outputs {

  /** Takes one, with the values of its headers, and names of at least as many. */
  void send(String topic, byte[] value, List<String> names, List<byte[]> values);
}
