"""`adapters.fromModel`: connectors of the model become adapters of the deployment."""

import json
from dataclasses import replace
from typing import Any

import pytest

from espha.protocol.status import ReplicaStatus
from espha.reader import read_project
from espha_operator.api import Spec
from espha_operator.api.adapters import InputAdapter
from espha_operator.api.deployment import Deployment, ModelFacts, ModelVersion
from espha_operator.api.images import Images
from espha_operator.reconcile import models, observe, versions
from espha_operator.reconcile.connectors import with_adapters
from espha_operator.reconcile.models import check
from espha_operator.status.checks import adapters_ready, model_valid
from espha_operator.status.facts import Facts, SetFacts, Verdict
from espha_operator.status.reasons import Reason
from unit.operator import samples
from unit.operator.memory import MemoryCluster, Play, status

FROM_MODEL = {"fromModel": True, "volume": {"claimName": "files"}}


def connector(class_: str, name: str = "", **properties: str) -> str:
    told = "".join(f'<property name="{key}">{one}</property>' for key, one in properties.items())
    return f'<connector class="{class_}" name="{name}"><properties>{told}</properties></connector>'


def project(inputs: str = "", outputs: str = "", topic: bool = True) -> str:
    fields = '<schema><fields><field name="k" type="int64" key="true"/></fields></schema>'
    kafka = connector("kafka", "k", type="sub") if topic else ""
    return (
        '<project name="p" pubsub="manual" threads="1"><contqueries><contquery name="q"><windows>'
        f'<window-source name="s">{fields}<connectors>{inputs}</connectors></window-source>\n'
        f'<window-copy name="c"><connectors>{kafka}{outputs}</connectors></window-copy>'
        '</windows><edges><edge source="s" target="c"/></edges></contquery></contqueries></project>'
    )


def deployment(**adapters: Any) -> Deployment:
    spec = {"model": {"inline": "x"}, "adapters": {**FROM_MODEL, **adapters}}
    return Deployment("demo", "shop", "uid", 1, Spec.model_validate(spec), Images())


def read(xml: str, **adapters: Any) -> ModelFacts | Verdict:
    return check(xml, "model.xml", deployment(**adapters))


def refused(xml: str, **adapters: Any) -> str:
    """Return why a model is refused, with its reason."""
    found = read(xml, **adapters)
    assert isinstance(found, Verdict)
    assert found.reason is Reason.UNFIT_CONNECTOR
    return found.message


def accepted(xml: str, **adapters: Any) -> ModelFacts:
    found = read(xml, **adapters)
    assert isinstance(found, ModelFacts)
    return found


def test_connectors_of_files_become_adapters() -> None:
    into = connector("fs", "in", type="pub", fsname="in/a.csv", fstype="csv", header="1")
    out = connector("fs", "out", type="sub", fsname="/mnt/out.csv", fstype="csv", header="full")
    source, target = accepted(project(into, out)).adapters
    assert json.loads(source.text()) == {
        "name": source.name,
        "window": "q/s",
        "file": {"path": "/data/in/a.csv", "headerLines": 1},
    }
    assert json.loads(target.text()) == {
        "name": target.name,
        "window": "q/c",
        "file": {"path": "/data/mnt/out.csv", "header": "full"},
    }
    assert (source.role, target.role) == ("input", "output")
    assert {one.volume.claim_name for one in (source, target) if one.volume} == {"files"}


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("a.csv", "/data/a.csv"),
        ("./in/a.csv", "/data/in/a.csv"),
        ("/mnt/share/a.csv", "/data/mnt/share/a.csv"),
        ("/data/a.csv", "/data/a.csv"),
        ("@ESP_PROJECT_HOME@/test_files/a.csv", "/data/test_files/a.csv"),
        ("@ESP_PROJECT_OUTPUT@/a.csv", "/data/output/a.csv"),
    ],
)
def test_files_lie_on_the_volume(file: str, path: str) -> None:
    (made,) = accepted(project(connector("fs", "a", type="pub", fsname=file))).adapters
    assert json.loads(made.text())["file"]["path"] == path


def test_a_command_line_in_the_model_becomes_one_too() -> None:
    command = "dfesp_fs_adapter -k pub -h dfESP://a:1/p/q/s -f /data/in.csv -t csv -i -x 2"
    (made,) = accepted(project(connector("adapter", "a", type="pub", command=command))).adapters
    told = json.loads(made.text())["file"]
    assert told == {"path": "/data/in.csv", "growing": True, "headerLines": 2}


def test_timers_and_topics_of_mqtt_become_adapters_without_a_volume() -> None:
    tick = connector("timer", "tick", type="pub", interval="5", unit="second")
    place = {"mqtthost": "broker", "mqtttopic": "a/b", "mqttqos": "1", "mqttpassword": "x"}
    into = connector("mqtt", "in", type="pub", mqttmsgtype="json", **place)
    out = connector("mqtt", "out", type="sub", mqttmsgtype="csv", **place)
    model = accepted(project(tick + into, out, topic=False))
    assert [json.loads(one.text()).get(one.type.name) for one in model.adapters] == [
        {"interval": 5, "label": "tick"},
        {"broker": "broker:1883", "topic": "a/b", "format": {"type": "json"}},
        {"broker": "broker:1883", "topic": "a/b"},
    ]
    assert {one.volume for one in model.adapters} == {None}
    assert model.outputs == ("q/c",)


def test_a_socket_in_the_model_listens_or_connects() -> None:
    listens = connector("fs", "one", type="pub", fsname=":5555")
    connects = connector("fs", "two", type="pub", fsname="host:5555")
    model = accepted(project(listens + connects))
    assert [json.loads(one.text())["socket"] for one in model.adapters] == [
        {"port": 5555},
        {"connect": "host:5555"},
    ]


def test_without_the_wish_nothing_is_made() -> None:
    into = connector("fs", "in", type="pub", fsname="..", fstype="csv")
    found = accepted(project(into), fromModel=False)
    assert (found.adapters, found.unfit, found.not_run) == ((), (), ())


def test_a_name_stays_when_other_connectors_come_and_go() -> None:
    """Its position is found by it: another name would publish the file once more."""
    one = connector("fs", "one", type="pub", fsname="a.csv")
    two = connector("fs", "two", type="pub", fsname="a.csv")
    (alone,) = accepted(project(one)).adapters
    names = [made.name for made in accepted(project(two + one)).adapters]
    assert names[1] == alone.name
    assert names[0] != alone.name
    (moved,) = accepted(project(one.replace("a.csv", "b.csv"))).adapters
    assert moved.name == alone.name


@pytest.mark.parametrize(
    ("inputs", "outputs", "sentence"),
    [
        (connector("fs", "x", type="pub", fsname="../a"), "", 'line 1: connector "x" of window q/s'
         ": the file /data/../a cannot lie on the volume"),
        (connector("fs", "x", type="pub", fsname="a b"), "", "cannot lie on the volume"),
        (connector("fs", "x", type="pub", fsname="@DIR@/a"), "", "nothing says what @DIR@ is"),
        (connector("fs", "x", type="pub", fsname="a", fstype="xml"), "", "fstype xml is not read"),
        (connector("fs", "x", type="pub", fsname=":55"), "", "greater than or equal to 1024"),
        (connector("mqtt", "x", type="pub", mqtthost="h"), "", "property 'mqtttopic' is missing"),
        ("", connector("mqtt", "x", type="sub", mqtthost="h", mqtttopic="a/#"),
         "line 2: connector \"x\" of window q/c: mqtt.topic: String should match pattern"),
        (connector("fs", "", type="pub", fsname="a", maxevents="5"), "", "line 1: connector of "
         "window q/s: maxevents cannot be followed"),
        ("", connector("fs", "x", type="sub", fsname="a", collapse="true"), "line 2: connector "
         '"x" of window q/c: collapse cannot be followed'),
        ("", connector("fs", "x", type="sub", fsname="a") + connector("fs", "y", type="sub",
         fsname="./a"), "2 adapters would write /data/a of volume files"),
    ],
)  # fmt: skip
def test_what_cannot_become_an_adapter_is_refused_with_its_place(
    inputs: str, outputs: str, sentence: str
) -> None:
    assert sentence in refused(project(inputs, outputs))


def test_a_window_that_is_written_gets_a_topic() -> None:
    """With the connector's own way to write dates; and once, whatever is read again."""
    out = connector("fs", "x", type="sub", fsname="a", dateformat="%Y", header="true")
    xml = project("", out, topic=False)
    model = accepted(xml)
    (made,) = model.adapters
    assert json.loads(made.text())["file"] == {"path": "/data/a", "header": "true"}
    assert model.outputs == ("q/c",)
    assert "shop_demo.p.q.c.O" in model.topics
    kafka = read_project(model.xml).windows["q/c"].kafka("sub")
    assert kafka is not None
    assert kafka.properties["dateformat"] == "%Y"
    assert accepted(model.xml).xml == model.xml
    without = accepted(xml, fromModel=False)
    assert (without.xml, without.outputs) == (xml, ())
    assert without.digest != model.digest


def test_a_file_of_the_resource_counts() -> None:
    mine = {"name": "mine", "window": "q/c", "file": {"path": "/data/a"},
            "volume": {"claimName": "files"}}  # fmt: skip
    xml = project("", connector("fs", "x", type="sub", fsname="a"))
    assert "2 adapters would write /data/a of volume files" in refused(xml, outputs=[mine])
    other = {**mine, "volume": {"claimName": "others"}}
    assert len(accepted(xml, outputs=[other]).adapters) == 1


def test_connectors_of_other_classes_are_named_in_the_status() -> None:
    inputs = connector("fs", "in", type="pub", fsname="a") + connector("nurego", "m", type="pub")
    command = connector("adapter", "t", type="pub", command="dfesp_twitter_publisher -u x")
    table = connector("db", "d", type="pub", selectstatement="select 1")
    model = accepted(project(inputs + command + table))
    assert model.not_run == (
        'Model, line 1: connector "m" of window q/s is not run: there is no adapter for '
        "class 'nurego'.",
        'Model, line 1: connector "t" of window q/s is not run: there is no substitute for '
        "'dfesp_twitter_publisher'.",
        'Model, line 1: connector "d" of window q/s is not run: there is an adapter of type sub '
        "only for class 'db'.",
    )
    wanted = with_adapters(deployment(), model)
    (made,) = wanted.spec.adapters.every
    facts = Facts(wanted, model, {f"demo-{made.label}": SetFacts(2, 2, 2)})
    verdict = adapters_ready(facts)
    assert verdict.message.startswith('All 1 adapters run. Model, line 1: connector "m"')


def test_only_files_need_a_volume() -> None:
    tick = connector("timer", "tick", type="pub", interval="5")
    assert len(accepted(project(tick), volume=None).adapters) == 1
    found = refused(project(connector("fs", "x", type="pub", fsname="a")), volume=None)
    assert "name a PersistentVolumeClaim in spec.adapters.volume.claimName" in found


def test_they_get_the_variables_of_the_resource() -> None:
    variable = {"name": "PGPASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "pw"}}}
    tick = connector("timer", "tick", type="pub", interval="5")
    mine = {"name": "mine", "window": "q/c", "socket": {"connect": "h:1"}}
    spec = {"env": [variable], "outputs": [mine]}
    model = accepted(project(tick), **spec)
    (made,) = model.adapters
    assert made.pod is not None
    assert made.pod.env is not None
    assert [one.name for one in made.pod.env] == ["PGPASSWORD"]
    told = with_adapters(deployment(**spec), model).spec.adapters.outputs
    assert [one.pod for one in told] == [None]


def test_they_run_where_the_resource_says() -> None:
    tick = connector("timer", "tick", type="pub", interval="5")
    toleration = {"key": "edge", "operator": "Exists", "effect": "NoSchedule"}
    place = {
        "nodeSelector": {"edge": "yes"},
        "tolerations": [toleration],
        "priorityClassName": "high",
    }
    variable = {"name": "A", "value": "1"}
    (made,) = accepted(project(tick), placement=place, env=[variable]).adapters
    assert made.pod is not None
    told = made.pod.model_dump(by_alias=True, exclude_none=True)
    assert told == {**place, "env": [variable]}


@pytest.mark.parametrize(
    ("connect", "place"),
    [
        ("postgresql://me:secret@db.shop:5433/results", {"url": "postgresql://me@db.shop:5433/"
         "results"}),
        ("Driver=PostgreSQL;Server=db;Database=results;Uid=me;Pwd=secret", {"url":
         "postgresql://me@db/results"}),
        ("sqlite:///rows.db", {"path": "/data/rows.db"}),
        ("sqlite:///@ESP_PROJECT_OUTPUT@/rows.db", {"path": "/data/output/rows.db"}),
    ],
)  # fmt: skip
def test_a_database_that_is_named_becomes_a_table(connect: str, place: dict[str, str]) -> None:
    out = connector("db", "d", type="sub", connectstring=connect, desttablename="t")
    model = accepted(project("", out, topic=False))
    (made,) = model.adapters
    assert json.loads(made.text())["table"] == {**place, "table": "t"}
    assert (made.volume is not None) == ("path" in place)
    assert model.outputs == ("q/c",)
    assert "secret" not in made.text()


def test_a_database_that_is_only_a_data_source_is_not_run_and_the_model_stays_as_it_is() -> None:
    """It was taken before there were adapters of tables in a model."""
    out = connector("db", "d", type="sub", connectstring="DSN=x;uid=u;pwd=p", desttablename="t")
    xml = project("", out, topic=False)
    model = accepted(xml)
    assert "nothing says which database it is" in model.not_run[0]
    assert (model.xml, model.adapters) == (xml, ())


def test_any_command_line_that_is_understood_becomes_one() -> None:
    command = (
        "dfesp_db_adapter -k sub -h dfESP://h:1/p/q/c -C desttablename=t,"
        "connectstring=postgresql://me@db/results"
    )
    out = connector("adapter", "d", type="sub", command=command)
    socket = connector("adapter", "s", type="pub", command="socket --host h --port 5555")
    source, target = accepted(project(socket, out)).adapters
    assert json.loads(source.text())["socket"] == {"connect": "h:5555"}
    assert json.loads(target.text())["table"]["url"] == "postgresql://me@db/results"


FAR = "kafka.example.org:9092"


def test_a_topic_of_another_cluster_becomes_an_adapter() -> None:
    """For engines it is not there: the window's topic is the deployment's own."""
    place = {"kafkahostport": FAR, "kafkatopic": "far", "kafkatype": "json"}
    into = connector("kafka", "in", type="pub", **place)
    out = connector("kafka", "out", type="sub", **place)
    xml = project(into, out)
    model = accepted(xml, otherBrokers=[FAR])
    assert [json.loads(one.text())["kafka"] for one in model.adapters] == [
        {"servers": FAR, "topic": "far", "format": {"type": "json"}}
    ] * 2
    assert set(model.input_topics.values()) == {"shop_demo.p.q.s.I"}
    assert model.outputs == ("q/c",)
    assert read_project(model.xml).windows["q/s"].kafka("pub") is None
    again = read_project(accepted(project(into, out, topic=False), otherBrokers=[FAR]).xml)
    kafka = again.windows["q/c"].kafka("sub")
    assert kafka is not None
    assert kafka.name == "espha_topic"


def test_without_its_brokers_in_the_resource_a_kafka_connector_names_the_deployments_topic() -> (
    None
):
    into = connector("kafka", "in", type="pub", kafkahostport=FAR, kafkatopic="near")
    model = accepted(project(into))
    assert model.adapters == ()
    assert "near" in model.topics


def test_whether_a_connector_of_another_cluster_is_active_is_no_token() -> None:
    into = connector("kafka", "in", type="pub", kafkahostport=FAR, kafkatopic="t", active="@ON@")
    off = connector("fs", "x", type="pub", fsname="a", active="@OFF@")
    xml = project(into + off).replace(
        "<contqueries>",
        '<properties><property name="ON">true</property><property name="OFF">false</property>'
        "</properties><contqueries>",
    )
    found = read(xml, otherBrokers=[FAR])
    assert isinstance(found, Verdict)
    assert "a token says whether a connector is active" in found.message


def test_contents_of_the_web_and_scripts_become_adapters() -> None:
    url = connector("url", "u", type="pub", configUrl="file://@ESP_PROJECT_HOME@/c.xml",
                    interval="5 seconds", properties="A=1")  # fmt: skip
    socket = connector("websocket", "w", type="pub", url="wss://h/x", contentType="json")
    script = connector("python", "p", type="pub", code="def publish():\n return True", init="go")
    lua = connector("lua", "l", type="pub", code="function publish() return true end",
                    interval="500 milliseconds", maxevents="3")  # fmt: skip
    made = accepted(project(url + socket + script + lua)).adapters
    assert [json.loads(one.text())[one.type.name] for one in made] == [
        {"configuration": "/data/c.xml", "properties": "A=1", "intervalS": 5},
        {"address": "wss://h/x"},
        {"language": "python", "code": "def publish():\n return True", "init": "go",
         "home": "/data"},
        {"language": "lua", "code": "function publish() return true end", "intervalMs": 500,
         "maxEvents": 3},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        (connector("url", "x", type="pub", configUrl="http://h/c.xml"), "configurl is on a server"),
        (connector("url", "x", type="pub"), "property 'configurl' is missing"),
        (connector("websocket", "x", type="pub", url="ws://h", requestHeaders="a:b"),
         "property 'requestheaders' is not known"),
        (connector("python", "x", type="pub", code=" "), "property 'code' is missing"),
        (connector("url", "x", type="pub", configUrl="../c"), "the file /data/../c cannot lie on"),
    ],
)  # fmt: skip
def test_what_says_too_little_is_named_and_does_not_stop_the_deployment(
    inputs: str, sentence: str
) -> None:
    model = accepted(project(inputs))
    assert model.adapters == ()
    assert sentence in model.not_run[0]


def test_they_start_stay_and_go_with_the_model(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that turns bad stops none of them; one without the connector does."""
    file = {"file": {"path": "/data/a"}, "volume": {"claimName": "files"}}
    made = InputAdapter.model_validate({"name": "a1", "window": "cq/memory", **file})
    told: dict[str, ModelFacts | Verdict] = {"now": replace(samples.MODEL, adapters=(made,))}
    monkeypatch.setattr(models, "check", lambda *_: told["now"])
    resource = cluster.objects["EspHaDeployment", "demo"]
    resource["spec"]["adapters"] |= FROM_MODEL
    steps.until_quiet()
    name = ("StatefulSet", f"demo-{made.label}")
    assert name in cluster.objects
    told["now"] = samples.BROKEN
    resource["spec"]["model"] = {"inline": "<bad/>"}
    steps.until_quiet()
    assert name in cluster.objects
    assert status(cluster)["phase"] == "Invalid"
    told["now"] = samples.MODEL
    resource["spec"]["model"] = {"inline": "<project/>"}
    steps.until_quiet()
    assert name not in cluster.objects
    assert ("StatefulSet", "demo-input-memory") in cluster.objects


def test_they_stay_when_no_engine_answers_while_a_new_model_is_in_the_shadow(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does an operator that has just started take them away."""
    file = {"file": {"path": "/data/a"}, "volume": {"claimName": "files"}}
    made = InputAdapter.model_validate({"name": "a1", "window": "cq/memory", **file})
    old = replace(samples.MODEL, xml="<old/>", adapters=(made,))
    found = {"<old/>": old, "<new/>": replace(samples.MODEL, xml="<new/>", digest=64 * "7")}
    for name in ("read", "check"):
        monkeypatch.setattr(models, name, lambda xml, *_: found[xml])
    ask = observe.ask_engine

    def answer(pod: observe.Pod) -> ReplicaStatus | None:
        told = ask(pod)
        assert told and told.engine
        return told.model_copy(
            update={"progress": told.engine.model_copy(update={"log_model": old.digest})}
        )

    monkeypatch.setattr(observe, "ask_engine", answer)
    resource = cluster.objects["EspHaDeployment", "demo"]
    resource["spec"]["adapters"] |= FROM_MODEL
    resource["spec"]["model"] = {"inline": "<old/>"}
    steps.until_quiet()
    resource["spec"]["model"] = {"inline": "<new/>"}
    steps.until_quiet()
    kept = {key: one for key, one in cluster.objects.items() if made.label in key[1]}
    label = status(cluster)["model"]
    monkeypatch.setattr(observe, "ask_engine", lambda pod: None)
    for play in (steps, Play(cluster)):
        play.until_quiet()
        assert {key: one for key, one in cluster.objects.items() if made.label in key[1]} == kept
        assert status(cluster)["model"] == label


def test_they_stay_with_the_model_that_leads() -> None:
    """A model in the shadow takes no adapter away before it leads, and brings none."""
    made = deployment()
    old = accepted(project(inputs=connector("fs", "in", type="pub", fsname="in.csv")))
    new = accepted(project(outputs=connector("fs", "out", type="sub", fsname="out.csv")))
    known = tuple(ModelVersion(one.digest, one.xml, "1") for one in (new, old))

    def adapters(leads: str) -> list[str]:
        found = with_adapters(made, versions.leading(made, known, leads, new))
        return [one.window for one in found.spec.adapters.every]

    assert adapters(old.digest) == ["q/s"]
    assert adapters(new.digest) == ["q/c"]
    assert adapters("") == ["q/c"]


def test_that_a_topic_of_type_binary_has_csv_is_said_in_the_status() -> None:
    """SAS's format is not published, and its failover asks for that type."""
    model = accepted(project("", connector("kafka", "k", type="sub", kafkatype="binary"), False))
    verdict = model_valid(Facts(deployment(), model, {}))
    assert verdict.reason is Reason.VALID
    assert "topics. Window q/c: kafkatype binary is a format of SAS's own" in verdict.message
    assert model_valid(Facts(deployment(), accepted(project()), {})).message.endswith(" topics.")
