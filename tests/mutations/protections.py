"""What protects each invariant, how to take it out, and the test that must fail then."""

from dataclasses import dataclass

_INVARIANTS = "tests/component/test_invariants.py"
_STUCK = "tests/component/test_stuck.py"
_FORK_SERVER = "tests/component/test_fork_server.py"
_QUARANTINE = "tests/unit/engine/test_quarantine.py"
_WRITER = "tests/component/test_writer.py"
_BATCH = "tests/component/test_batch.py"
_ELECTION = "tests/component/test_election.py"


@dataclass(frozen=True)
class Mutation:
    """One protection, taken out.

    Attributes:
        invariant: I1 to I6, as in docs/explanation/protocol.md; `live`: output goes on;
            `poison`: no record stops every engine; `edges`: adapters, each row once.
        text: what is taken out, for people.
        file: where, from the project's root.
        old: the code of the protection, which stands there once.
        new: what stands there instead.
        test: the test that must fail, as pytest takes it.
        says: what is in the reason for which it fails.
    """

    invariant: str
    text: str
    file: str
    old: str
    new: str
    test: str
    says: str

    def applied_to(self, source: str) -> str:
        """Return the source without the protection.

        Raises:
            LookupError: the protection does not stand there once.
        """
        count = source.count(self.old)
        if count != 1:
            raise LookupError(f"{self.file}: {self.text}: the code stands there {count} times")
        return source.replace(self.old, self.new)


MUTATIONS = (
    Mutation(
        "I1",
        "each engine has a transactional id of its own",
        "engine/espha/pipeline/transactions.py",
        '"transactional.id": transactional_id}',
        '"transactional.id": f"{transactional_id}-{id(self)}"}',
        f"{_INVARIANTS}::test_i1_only_the_newest_epoch_writes",
        "old goes on",
    ),
    Mutation(
        "I1",
        "a dead engine's fence is not ended, and shuts out its successor",
        "engine/espha/pipeline/session.py",
        "        jvm.dev.espha.Channel.end()\n",
        "",
        f"{_FORK_SERVER}::test_a_fence_that_is_under_way_dies_with_its_engine_process",
        "Fenced",
    ),
    Mutation(
        "I2",
        "outputs and order record go in two transactions",
        "engine/java/dev/espha/Transactions.java",
        "      Future<RecordMetadata> sent = send(topic, value, List.of());\n",
        "      if (begun) {\n"
        "        producer.commitTransaction();\n"
        "        begun = false;\n"
        "      }\n"
        "      Future<RecordMetadata> sent = send(topic, value, List.of());\n",
        f"{_INVARIANTS}::test_i2_outputs_are_nothing_without_their_order_record",
        "never",
    ),
    Mutation(
        "I1",
        "an engine leads while another id has a transaction open on the order log",
        "engine/espha/pipeline/transactions.py",
        "        self._wait_until_closed()\n",
        "",
        f"{_INVARIANTS}::test_i1_nobody_leads_while_another_id_has_the_log_open",
        "looks whether",
    ),
    Mutation(
        "I2",
        "the end of a slow transaction may come twice, and end the next one",
        "engine/espha/pipeline/transactions.py",
        "self._renew = self._version < _SAFE_VERSION and ",
        "self._renew = False and ",
        f"{_WRITER}::test_a_slow_commit_is_followed_by_a_new_epoch",
        "assert",
    ),
    Mutation(
        "I3",
        "the JVM digests other headers than Python",
        "engine/java/dev/espha/Call.java",
        "      digest(bytes(names.headers().get(place)));\n",
        "",
        f"{_BATCH}::test_digests_are_alike_wherever_outputs_go",
        "assert",
    ),
    Mutation(
        "I3",
        "a follower uses its own clock",
        "engine/espha/engine/follower.py",
        "self._at.batch(record.sequence, record.clock, inputs, record.skipped)",
        "self._at.batch(record.sequence, __import__('time').time_ns() // 1_000_000, inputs)",
        f"{_INVARIANTS}::test_i3_state_is_a_function_of_the_log",
        "Diverged",
    ),
    Mutation(
        "I3",
        "each batch starts with empty state",
        "engine/espha/engine/position.py",
        "expect = None if self.fresh else self.sequence",
        "expect = None",
        f"{_INVARIANTS}::test_i3_state_is_a_function_of_the_log",
        "assert 2 == 8",
    ),
    Mutation(
        "I3",
        "a follower does not compare its input with what the active engine has read",
        "engine/espha/engine/follower.py",
        "        if (len(inputs), digest) != (record.records, record.inputs_digest):\n",
        "        if False:\n",
        "tests/unit/engine/test_engine.py::"
        "test_other_input_than_the_active_engine_had_is_found_at_once",
        "Elected",
    ),
    Mutation(
        "I3",
        "what lies before the first range of a topic is processed",
        "engine/espha/engine/inputs.py",
        "if entry.offset >= wanted.start",
        "if True",
        "tests/unit/engine/test_inputs.py::test_what_lies_before_the_first_range_is_not_processed",
        "assert [1, 2, 3, 4] == [3, 4]",
    ),
    Mutation(
        "I3",
        "a wall clock that jumps moves the log's clock",
        "engine/espha/engine/leader.py",
        "return self._clock.next(self._at.clock, self._at.age_ms)",
        "return max(self._at.clock, __import__('time').time_ns() // 1_000_000)",
        "tests/unit/engine/test_roles.py::"
        "test_a_wall_clock_that_jumps_does_not_move_the_logs_clock",
        "< 60000",
    ),
    Mutation(
        "I3",
        "a snapshot that is ahead of the log is taken",
        "engine/espha/recovery/candidates.py",
        "if topic in self.end and self.end[topic] < read - 1:",
        "if False:",
        "tests/unit/recovery/test_candidates.py::test_one_that_does_not_fit_is_passed_over",
        "assert [9] == []",
    ),
    Mutation(
        "I2",
        "an engine goes on behind records that the log has lost",
        "engine/espha/kafka/order_log.py",
        "if self._reached > end + 1:",
        "if False:",
        "tests/unit/kafka/test_order_log.py::test_a_log_that_has_lost_its_end_is_not_taken_for_read",
        "DID NOT RAISE",
    ),
    Mutation(
        "I3",
        "an engine that cannot recompute a record tries for ever",
        "engine/espha/recovery/divergence.py",
        "return self.at if self.times >= _AGAIN else None",
        "return None",
        "tests/unit/recovery/test_healing.py::"
        "test_at_the_same_record_once_more_it_takes_the_active_engines_state",
        "== 12",
    ),
    Mutation(
        "I3",
        "a follower does not compare its state with the active engine's",
        "engine/espha/engine/follower.py",
        "        while difference := self._agreement.difference():\n",
        "        while difference := None:\n",
        "tests/unit/engine/test_engine.py::"
        "test_another_state_than_the_active_engines_is_found_before_a_failover",
        "Elected",
    ),
    Mutation(
        "I4",
        "a standby reads what is not committed",
        "engine/espha/kafka/reader.py",
        '"isolation.level": "read_committed",',
        '"isolation.level": "read_uncommitted",',
        f"{_INVARIANTS}::test_i4_a_standby_is_never_ahead",
        "Diverged",
    ),
    Mutation(
        "I4",
        "a standby takes input that nobody has ordered",
        "engine/espha/engine/engine.py",
        "                self._follower.poll(_LOOK_S)\n",
        "                self._follower.poll(_LOOK_S)\n"
        "                _, inputs = self._inputs.take(5_000, 0)\n"
        "                if inputs:\n"
        "                    self._job.run([self._at.batch(self._at.sequence + 1, 0, inputs)])\n",
        f"{_INVARIANTS}::test_i4_a_standby_is_never_ahead",
        "standby",
    ),
    Mutation(
        "I5",
        "a supervisor knows Kubernetes",
        "engine/espha/ha/supervisor.py",
        "import signal\nimport sys\n",
        "import signal\nimport sys\nimport kubernetes\n",
        f"{_INVARIANTS}::test_i5_engines_know_neither_kubernetes_nor_the_operator",
        "kubernetes",
    ),
    Mutation(
        "I6",
        "readers see what is not committed",
        "engine/espha/kafka/reader.py",
        '"isolation.level": "read_committed",',
        '"isolation.level": "read_uncommitted",',
        f"{_INVARIANTS}::test_i6_no_reader_sees_what_is_not_committed",
        "never",
    ),
    Mutation(
        "I6",
        "outputs have no ids",
        "engine/espha/pipeline/transactions.py",
        "for key, value in output.headers]",
        "for key, value in output.headers[:0]]",
        f"{_INVARIANTS}::test_i6_no_reader_sees_what_is_not_committed",
        "outputs without an order record",
    ),
    Mutation(
        "live",
        "a call does not end when an output fits no column",
        "engine/espha/pipeline/worker.py",
        "            if ends is not None:\n",
        "            if False:\n",
        "tests/unit/pipeline/test_worker.py::test_a_call_ends_though_an_output_fits_no_column",
        "assert",
    ),
    Mutation(
        "live",
        "what one event brings about leaves at once, however much it is",
        "engine/espha/pipeline/worker.py",
        "        for at in range(0, len(rows), _ROWS_AT_ONCE):\n"
        "            share = rows[at : at + _ROWS_AT_ONCE]\n",
        "        for share in [rows] if rows else []:\n",
        "tests/unit/pipeline/test_worker.py::test_what_a_page_brings_about_leaves_in_pieces",
        "assert",
    ),
    Mutation(
        "live",
        "an engine begins on a master with which it waits for ever",
        "engine/espha/protocol/settings.py",
        "    if not _LOCAL_MASTER.fullmatch(master):\n",
        '    if not master.startswith("local"):\n',
        "tests/unit/protocol/test_settings.py::test_another_master_is_refused",
        "DID NOT RAISE",
    ),
    Mutation(
        "live",
        "a supervisor goes by heartbeats alone",
        "engine/espha/ha/progress_judge.py",
        "            return KillReason.STUCK\n",
        "            return None\n",
        f"{_STUCK}::test_a_child_that_hangs_in_a_batch_is_replaced",
        "b is active",
    ),
    Mutation(
        "live",
        "nobody looks at the processes below a child",
        "engine/espha/ha/progress_judge.py",
        "            return KillReason.STOPPED\n",
        "            return None\n",
        f"{_STUCK}::test_a_child_with_a_frozen_process_is_replaced",
        "b is active",
    ),
    Mutation(
        "live",
        "any broker that answers will do",
        "engine/espha/ha/supervisor.py",
        "        if all(answers) or not self._asks.due(answers):\n",
        "        if any(answers) or not self._asks.due(answers):\n",
        f"{_STUCK}::test_whom_one_broker_does_not_answer_gives_way",
        "b is active",
    ),
    Mutation(
        "live",
        "a standby sees input that nobody takes, and says nothing",
        "engine/espha/ha/supervisor.py",
        "self._kafka.settled and self._witness.suspects()",
        "self._kafka.settled and not self._witness",
        f"{_STUCK}::test_a_standby_deposes_whoever_does_not_take_its_input",
        "b is active",
    ),
    Mutation(
        "live",
        "who hears less gives way to who hears something else",
        "engine/espha/ha/kafka_probe.py",
        "    return all(there or not here for there, here in pairs) and any(\n",
        "    return any(\n",
        "tests/unit/ha/test_kafka_probe.py::test_who_hears_more_must_hear_all_the_rest",
        "is False",
    ),
    Mutation(
        "live",
        "an engine that ends still takes connections of those who hold on to it",
        "engine/espha/protocol/lifeline.py",
        "            self._server.shutdown(socket.SHUT_RDWR)\n",
        "            pass\n",
        "tests/unit/ha/test_heartbeat.py::test_a_process_that_is_about_to_end_says_so",
        "Empty",
    ),
    Mutation(
        "live",
        "an heir that was frozen leads without asking whether it comes too late",
        "engine/espha/engine/engine.py",
        "        if prompt and mine and ready:",
        "        if mine and ready:",
        "tests/unit/engine/test_roles.py::test_an_heir_that_comes_too_late_leaves_it",
        "engine-1",
    ),
    Mutation(
        "live",
        "a standby waits for ever for input that the order log names",
        "engine/espha/engine/inputs.py",
        "            standstill.look(self._stable[wanted.topic])\n",
        "",
        "tests/unit/engine/test_inputs.py::test_a_range_that_never_comes_is_not_waited_for_for_ever",
        "it waits for ever",
    ),
    Mutation(
        "poison",
        "nobody works carefully where engines have died",
        "engine/espha/engine/quarantine.py",
        "        return Care(max(1, deaths.records // _PARTS))\n",
        "        return None\n",
        f"{_QUARANTINE}::test_a_record_that_kills_without_a_word_costs_six_lives",
        "this goes on for ever",
    ),
    Mutation(
        "poison",
        "a failure of time alone is laid on a record",
        "engine/espha/engine/leader.py",
        "self._inputs.take(care.limit, wait_s) if self._calm else ([], [])",
        "self._inputs.take(care.limit, wait_s)",
        f"{_QUARANTINE}::test_time_that_kills_is_laid_on_no_record",
        "assert",
    ),
    Mutation(
        "poison",
        "what Kafka does to a batch is laid on a record",
        "engine/espha/engine/quarantine.py",
        "        except (WriterFailed, LogError):\n            self._note.clear()\n",
        "        except (WriterFailed, LogError):\n",
        f"{_QUARANTINE}::test_what_kafka_does_is_no_records_fault",
        "is None",
    ),
    Mutation(
        "poison",
        "a kill in any batch of one record counts against the record",
        "engine/espha/protocol/deaths.py",
        "if culprit is None and died.careful and died.records == 1:",
        "if culprit is None and died.records == 1:",
        f"{_QUARANTINE}::test_a_single_record_is_set_aside_when_it_was_careful_twice",
        "== 5",
    ),
    Mutation(
        "poison",
        "a batch is bounded by rows alone",
        "engine/espha/engine/inputs.py",
        "                if left < 0 and (taken or share):\n",
        "                if not buffer:\n",
        "tests/unit/engine/test_input_bounds.py::test_a_batch_is_bounded_by_bytes",
        "4194304",
    ),
    Mutation(
        "poison",
        "an output that no topic takes is written all the same",
        "engine/espha/pipeline/fitting.py",
        "    return size_of(value, headers) <= RECORD_BYTES\n",
        "    return True\n",
        "tests/unit/pipeline/test_fitting.py::test_headers_count",
        "assert not",
    ),
    Mutation(
        "live",
        "the death of a worker costs its JVM",
        "engine/espha/engine/main.py",
        "worker=lambda: _give_up(control, EndReason.WORKER,",
        "worker=lambda: _give_up(control, EndReason.UNKNOWN,",
        f"{_FORK_SERVER}::test_a_killed_worker_comes_back_on_the_same_jvm",
        "assert",
    ),
    Mutation(
        "live",
        "a query that keeps its first rows back is waited for without end",
        "engine/espha/engine/main.py",
        "        signal.setitimer(signal.ITIMER_REAL, limit_s)\n",
        "",
        "tests/unit/engine/test_main.py::test_a_query_that_keeps_rows_back_is_told_with_the_versions",
        "Timeout",
    ),
    Mutation(
        "I4",
        "an heir does not look whether somebody has committed behind the record that names it",
        "engine/espha/engine/engine.py",
        "if heir == self._name and self._leads_next and self._log.at(self._log.end()):",
        "if heir == self._name and self._leads_next:",
        "tests/unit/engine/test_roles.py::test_an_heir_that_comes_too_late_leaves_it",
        "engine-1",
    ),
    Mutation(
        "I3",
        "an elected engine commits with its own model behind a switch to another one",
        "engine/espha/engine/engine.py",
        "        if not self._leads_next:\n            raise self._switched()\n        if self._at",
        "        if self._at",
        "tests/unit/engine/test_model_change.py::"
        "test_an_elected_engine_of_the_old_model_commits_nothing_behind_the_switch",
        "Stopped",
    ),
    Mutation(
        "I3",
        "a model whose beginning is gone starts with empty state",
        "engine/espha/engine/follower.py",
        "elif record.since and not self._at.begun:",
        "elif False:",
        "tests/unit/engine/test_model_change.py::"
        "test_a_model_whose_beginning_is_gone_does_not_start_with_empty_state",
        "Diverged",
    ),
    Mutation(
        "I3",
        "a state that began elsewhere is taken for that of the log's shadow",
        "engine/espha/engine/shadow.py",
        "if shadow.since != at.since:",
        "if False:",
        "tests/unit/engine/test_model_change.py::"
        "test_one_whose_state_began_elsewhere_is_not_that_shadow",
        "Stopped",
    ),
    Mutation(
        "I1",
        "one that may have been deposed commits nothing by which it would learn it",
        "engine/espha/engine/engine.py",
        "self._leader.step(prove=self._change_model() or self._in_doubt())",
        "self._leader.step(prove=self._change_model())",
        "tests/unit/engine/test_roles.py::test_one_that_may_be_deposed_commits_without_input",
        "inputs",
    ),
    Mutation(
        "live",
        "a connection that never stood counts as ended",
        "engine/espha/ha/heartbeat.py",
        "        while not self._connect():\n            if self._stopped.wait(_AGAIN_S):\n"
        "                return\n",
        "        self._connect()\n",
        "tests/unit/ha/test_heartbeat.py::test_nobody_there_from_the_first_is_no_death",
        "nothing",
    ),
    Mutation(
        "I3",
        "the digest of a state depends on which objects happen to be shared",
        "engine/espha/recovery/plain.py",
        "    pickler.fast = True\n",
        "",
        "tests/unit/recovery/test_store.py::test_equal_data_have_the_same_bytes",
        "assert",
    ),
    Mutation(
        "I3",
        "the process that writes a state asks the process of a script, while the worker does",
        "engine/espha/pipeline/forked.py",
        "            kernel.settle()\n",
        "            pass\n",
        "tests/unit/pipeline/test_forked.py::test_the_state_is_that_of_the_moment",
        "assert",
    ),
    Mutation(
        "live",
        "the process that writes a state keeps what it has inherited open",
        "engine/espha/pipeline/forked.py",
        "        _close_all_but(report)\n",
        "",
        "tests/unit/pipeline/test_forked.py::test_it_holds_nothing_of_what_it_has_inherited",
        "assert",
    ),
    Mutation(
        "live",
        "every engine writes snapshots, the active one as well",
        "engine/espha/recovery/scheduler.py",
        " and self._chosen()",
        "",
        "tests/unit/recovery/test_scheduler.py::test_only_the_chosen_one_does_it_without_being_asked",
        "assert not",
    ),
    Mutation(
        "live",
        "what a child says while it is judged is taken at once",
        "engine/espha/ha/progress_judge.py",
        "        with self._lock:\n            before = self._told\n",
        "        if self._lock:\n            before = self._told\n",
        "tests/unit/ha/test_progress_judge.py"
        "::test_what_is_heard_while_it_is_judged_disturbs_nobody",
        "IndexError",
    ),
    Mutation(
        "live",
        "a backlog has a limit of its own, however long no page of it is done",
        "engine/espha/ha/progress_judge.py",
        "        records = min(told.records, _PAGE)\n",
        "        records = told.records\n",
        "tests/unit/ha/test_progress_judge.py"
        "::test_a_record_without_an_end_is_found_as_soon_in_a_large_batch",
        "assert",
    ),
    Mutation(
        "live",
        "a page of which nothing comes out is done without a sign",
        "engine/espha/pipeline/worker.py",
        "        if self._out.is_empty():\n",
        "        if False:\n",
        "tests/unit/pipeline/test_worker.py::test_each_page_gives_a_sign",
        "assert",
    ),
    Mutation(
        "live",
        "one that is behind leads before others that may not be",
        "engine/espha/ha/election.py",
        " or self._lets_others_go(queue):",
        ":",
        f"{_ELECTION}::test_whoever_is_behind_gives_way_to_whoever_is_not",
        "in step",
    ),
    Mutation(
        "live",
        "those that are behind let each other go first for ever",
        "engine/espha/ha/election.py",
        "if self._ready() or self._let_others_go or len(queue) == 1:",
        "if self._ready() or len(queue) == 1:",
        f"{_ELECTION}::test_whoever_is_behind_lets_the_others_go_first_but_once",
        "b leads",
    ),
    Mutation(
        "live",
        "one that has fallen behind keeps its place in the queue",
        "engine/espha/ha/supervisor.py",
        "            self._member.requeue()  # others are further\n",
        "            pass\n",
        "tests/unit/ha/test_supervisor.py::test_who_falls_behind_goes_to_the_end_of_the_queue",
        "assert",
    ),
    Mutation(
        "live",
        "one that has lost its session leads on, whoever has led meanwhile",
        "engine/espha/ha/election.py",
        "        self._look_for_doubt()\n",
        "",
        f"{_ELECTION}::test_whoever_has_lost_its_session_finds_out_whether_it_still_leads",
        "elected again",
    ),
    Mutation(
        "live",
        "whoever has handed over in vain waits for ZooKeeper",
        "engine/espha/ha/switchover.py",
        "            self._child.make_active()\n",
        "",
        "tests/unit/ha/test_switchover.py::test_zookeeper_is_not_needed_to_go_on",
        "active",
    ),
    Mutation(
        "live",
        "a pause that has become long goes on although Kafka is back",
        "engine/espha/ha/pauses.py",
        "                length = min(length, at_least_s)\n",
        "                pass\n",
        "tests/unit/ha/test_pauses.py::test_a_pause_ends_when_kafka_answers_again",
        "assert 30.0 == 0.4",
    ),
    Mutation(
        "live",
        "nobody leads before ZooKeeper knows who is dead",
        "engine/espha/ha/election.py",
        "            if not self._succeeds(dead):\n",
        "            if dead:\n",
        "tests/component/test_supervisor.py::test_the_next_one_leads_without_zookeeper",
        "is active",
    ),
    Mutation(
        "live",
        "one leads at once although the log's leader is not among the dead",
        "engine/espha/ha/supervisor.py",
        ' and progress.active in ("", *dead)',
        "",
        "tests/unit/ha/test_supervisor.py"
        "::test_one_leads_at_once_only_where_the_logs_leader_is_among_the_dead",
        "assert True is False",
    ),
    Mutation(
        "live",
        "a znode that nobody owns is waited for",
        "engine/espha/ha/election.py",
        " and child not in self._strangers",
        "",
        f"{_ELECTION}::test_a_znode_that_nobody_owns_stops_no_election",
        "a leads",
    ),
    Mutation(
        "live",
        "anybody may read how to close an engine's session",
        "engine/espha/ha/zookeeper.py",
        "        return [make_digest_acl(_USER, self._password, all=True)]\n",
        "        return list(OPEN_ACL_UNSAFE)\n",
        f"{_ELECTION}::test_who_does_not_know_the_token_reads_no_password",
        "DID NOT RAISE",
    ),
    Mutation(
        "live",
        "one that was frozen after its election shuts its successor out",
        "engine/espha/engine/engine.py",
        "        if self._control.overslept:",
        "        if False:",
        "tests/unit/engine/test_roles.py::test_an_engine_that_wakes_up_too_late_shuts_nobody_out",
        "Over",
    ),
    Mutation(
        "live",
        "every open transaction is an alarm",
        "engine/espha/kafka/held.py",
        "return held if held and self._clock() - held.since > _LONG_S else None",
        "return held",
        "tests/unit/kafka/test_held.py::test_only_what_stands_still_for_long_is_held",
        "is None",
    ),
    Mutation(
        "live",
        "Spark has the JVM collect all its garbage every half hour",
        "engine/espha/pipeline/session.py",
        '    "spark.cleaner.referenceTracking": "false",\n',
        "",
        f"{_BATCH}::test_nothing_has_the_jvm_collect_all_its_garbage_now_and_then",
        "isEmpty",
    ),
    Mutation(
        "live",
        "Python searches all the state for cycles",
        "engine/espha/pipeline/worker.py",
        "    gc.freeze()\n",
        "",
        "tests/unit/pipeline/test_worker.py"
        "::test_a_worker_does_not_search_all_its_state_for_cycles",
        "assert",
    ),
    Mutation(
        "I3",
        "an order record of a format that is not known is guessed at",
        "engine/espha/kafka/order_log.py",
        "        if record.format <= FORMAT:\n",
        "        if record:\n",
        "tests/unit/kafka/test_order_log.py::test_a_format_of_a_newer_espha_is_refused_by_name",
        "DID NOT RAISE",
    ),
    Mutation(
        "I2",
        "the checker overlooks input that batches have left out",
        "engine/espha/checker/judge.py",
        "unprocessed = coverage.passed_over + (coverage.waiting if evidence.drained else [])",
        "unprocessed = coverage.waiting if evidence.drained else []",
        "tests/unit/checker/test_judge.py::test_input_that_was_passed_over_is_not_processed",
        "assert",
    ),
    Mutation(
        "I2",
        "records on a topic's other partitions are lost without a word",
        "engine/espha/kafka/reader.py",
        "        if count != 1:\n",
        "        if False:\n",
        "tests/unit/recovery/test_restore.py::test_a_topic_with_more_partitions_is_refused",
        "DID NOT RAISE",
    ),
    Mutation(
        "edges",
        "what comes again under an id that is known is published again",
        "engine/espha/adapters/remembered.py",
        "        if known and known in self.ids:\n            return (), self\n",
        "",
        "tests/unit/adapters/test_mqtt.py::test_a_message_whose_id_is_known_is_not_published_again",
        "assert",
    ),
    Mutation(
        "edges",
        "numbered lines of a socket are published again after a break",
        "engine/espha/adapters/socket_input/run.py",
        " if number >= due]",
        "]",
        "tests/unit/adapters/test_receiving.py"
        "::test_numbered_lines_count_once_across_connections_and_lives",
        "assert",
    ),
    Mutation(
        "edges",
        "whoever posts is asked for nothing",
        "engine/espha/adapters/http_input/run.py",
        "if not self._may_post(request):",
        "if False:",
        "tests/unit/adapters/test_receiving.py::test_only_who_bears_the_authorization_may_post",
        "assert",
    ),
)
