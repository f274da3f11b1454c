"""Resources that must be refused, and the page that says how."""

from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]
INPUT: Object = {
    "name": "a",
    "window": "cq/in",
    "volume": {"claimName": "data"},
    "file": {"path": "/data/a.csv"},
}
OUTPUT: Object = {**INPUT, "file": {"path": "/data/b.csv"}}


def _input(**changes: Any) -> Object:
    return {"adapters": {"inputs": [{**INPUT, **changes}]}}


def _file(**changes: Any) -> Object:
    return _input(file={**INPUT["file"], **changes})


def _pod(**pod: Any) -> Object:
    return {"kafka": {"pod": pod}}


def _memory(request: str | int | None, limit: str | int | None) -> Object:
    made = {"requests": {"memory": request}, "limits": {"memory": limit}}
    return {key: value for key, value in made.items() if value["memory"] is not None}


def _kafka(**config: Any) -> Object:
    return {"kafka": {"config": {key.replace("_", "."): value for key, value in config.items()}}}


NODES = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In"}]}]}
NUMBER = [{"key": "cores", "operator": "Gt", "values": ["many"]}]
PODS = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}

# What is wrong -> the spec, beside a model; grouped as on the page.
BAD: dict[str, dict[str, Object]] = {
    "The whole": {
        "an unknown field": {"engine": {"replicas": 3}},
        "a policy that there is not": {"pvcPolicy": "Keep"},
        "no model": {"model": {}},
        "two models": {"model": {"inline": "x", "configMap": {"name": "m"}}},
        "an empty model": {"model": {"inline": ""}},
        "a model that is too large": {"model": {"inline": 120_001 * "x"}},
        "a model of too many bytes": {"model": {"inline": 40_001 * "€"}},
        "a ConfigMap that cannot be": {"model": {"configMap": {"name": "My_Model"}}},
        "a key that cannot be": {"model": {"configMap": {"name": "m", "key": "model xml"}}},
        "a key that is no file's name": {"model": {"configMap": {"name": "m", "key": "."}}},
        "a pull policy that there is not": {"imagePullPolicy": "Sometimes"},
        "a pull secret that cannot be": {"imagePullSecrets": [{"name": "My Secret"}]},
        "a pull secret twice": {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
    },
    "Engines": {
        "a number as a word": {"engines": {"replicas": "three"}},
        "no engines": {"engines": {"replicas": 0}},
        "ten engines": {"engines": {"replicas": 10}},
        "an image with a blank": {"engines": {"image": "espha engine"}},
        "an image in upper case": {"engines": {"image": "Espha/Engine:1"}},
        "a forced model without its place": {"engines": {"forceModel": "0123456789ab"}},
        "a snapshot each moment": {"engines": {"snapshots": {"interval": 0}}},
        "no snapshots kept": {"engines": {"snapshots": {"retain": 0}}},
        "a volume too small": {"engines": {"snapshots": {"storage": {"size": "10Mi"}}}},
        "a size without digits": {"engines": {"snapshots": {"storage": {"size": "large"}}}},
        "a storage class that cannot be": {
            "engines": {"snapshots": {"storage": {"storageClassName": "Fast_SSD"}}}
        },
    },
    "Requests, limits, heaps": {
        "a request above its limit": {"engines": {"resources": _memory("3Gi", "2Gi")}},
        "a processor request above its limit": {
            "kafka": {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}}
        },
        "no processor time": {"engines": {"resources": {"requests": {"cpu": 0}}}},
        "less than none": {"engines": {"resources": {"requests": {"cpu": "-1"}}}},
        "a processor limit too small": {"engines": {"resources": {"limits": {"cpu": "1m"}}}},
        "memory without a unit that there is": {"engines": {"resources": _memory(None, "2GB")}},
        "too little memory for an engine": {"engines": {"resources": _memory(None, "256Mi")}},
        "too little memory for a broker": {"kafka": {"resources": _memory(None, "256Mi")}},
        "too little memory for a server": {"zookeeper": {"resources": _memory(None, "100m")}},
        "too little memory for an adapter": {"adapters": {"resources": _memory(None, "64Mi")}},
        "too little space for logs": {
            "engines": {"resources": {"limits": {"ephemeralStorage": "1Mi"}}}
        },
        "a heap that the usual limit has no room for": {"kafka": {"heap": "800Mi"}},
        "a heap that its limit has no room for": {
            "engines": {"heap": "2Gi", "resources": _memory(None, "2Gi")}
        },
        "a heap that is too small": {"kafka": {"heap": "1Mi"}},
        "a heap with which Spark does not start": {"engines": {"heap": "400Mi"}},
        "the heap as an option": {"kafka": {"jvmOptions": ["-Xmx2g"]}},
        "an option that is none": {"kafka": {"jvmOptions": ["rm -rf *"]}},
    },
    "ZooKeeper": {
        "two servers": {"zookeeper": {"replicas": 2}},
        "a tick too short": {"zookeeper": {"tickTime": 10}},
        "a tick too long": {"zookeeper": {"tickTime": 501}},
        "a session too short by its ticks": {"zookeeper": {"tickTime": 40}},
        "a session too short": {"zookeeper": {"tickTime": 60, "sessionTimeout": 120}},
        "a session shorter than two ticks": {"zookeeper": {"sessionTimeout": 300}},
        "a session longer than twenty ticks": {"zookeeper": {"sessionTimeout": 5000}},
        "managed and external": {
            "zookeeper": {"replicas": 3, "external": {"servers": ["zk:2181"]}}
        },
        "no external server": {"zookeeper": {"external": {"servers": []}}},
        "an address without a port": {"zookeeper": {"external": {"servers": ["zk"]}}},
    },
    "Kafka": {
        "ten brokers": {"kafka": {"replicas": 10}},
        "managed and external": {
            "kafka": {"replicas": 1, "external": {"bootstrapServers": ["k:9092"]}}
        },
        "a port that cannot be": {"kafka": {"external": {"bootstrapServers": ["k:70000"]}}},
        "a setting of the operator": _kafka(node_id=7),
        "another listener": _kafka(listeners="SSL://:9093"),
        "fewer copies": _kafka(min_insync_replicas=1),
        "unclean elections": _kafka(unclean_leader_election_enable="true"),
        "unchecked transactions": _kafka(transaction_partition_verification_enable="false"),
        "messages too small": _kafka(message_max_bytes=1000),
        "transactions too short": _kafka(transaction_max_timeout_ms=1000),
        "writers forgotten too soon": _kafka(transactional_id_expiration_ms=60000),
        "a switch that is neither on nor off": _kafka(log_cleaner_enable="yes"),
        "a number that is none": _kafka(log_segment_bytes="1GB"),
        "true without quotes": _kafka(log_cleaner_enable=True),
        "a name that cannot be": {"kafka": {"config": {"Log.Dirs": "/data"}}},
        "two lines": _kafka(log_cleanup_policy="delete\nnode.id=9"),
    },
    "Topics": {
        "a prefix that cannot be": {"topics": {"prefix": "../x"}},
        "a time without a unit": {"topics": {"retention": "a while"}},
        "no copies": {"topics": {"replicationFactor": 0}},
        "more copies than brokers": {"topics": {"replicationFactor": 4}},
        "more in sync than copies": {"topics": {"replicationFactor": 2, "minInSyncReplicas": 3}},
        "more in sync than usual copies": {
            "kafka": {"replicas": 5},
            "topics": {"minInSyncReplicas": 4},
        },
    },
    "Adapters": {
        "a name that cannot be": _input(name="Bad Name"),
        "a name that is too long": _input(name=21 * "a"),
        "a name that another deployment's broker could have": _input(name="kafka"),
        "two of one name": {"adapters": {"inputs": [INPUT, INPUT]}},
        "a window without its query": _input(window="in"),
        "no type": {"adapters": {"inputs": [{"name": "a", "window": "cq/in"}]}},
        "files without a volume": {
            "adapters": {"outputs": [{k: v for k, v in OUTPUT.items() if k != "volume"}]}
        },
        "a volume for all and one for each": _input(storage={"size": "1Gi"}),
        "lines of a socket in utf-16": {
            "adapters": {
                "inputs": [
                    {
                        "name": "a",
                        "window": "cq/in",
                        "socket": {"port": 5000, "format": {"encoding": "utf-16"}},
                    }
                ]
            }
        },
        "a claim that cannot be": _input(volume={"claimName": "a..b"}),
        "too many replicas": _input(replicas=6),
        "a file elsewhere": _file(path="/etc/passwd"),
        "a file above": _file(path="/data/../etc/passwd"),
        "lines before the first": _file(headerLines=-1),
        "a format of dates that there is not": _file(dateFormat="%Q"),
        "a quotation mark between columns": _file(delimiter='"'),
        "a header that there is not": {
            "adapters": {"outputs": [{**OUTPUT, "file": {"path": "/data/b.csv", "header": "yes"}}]}
        },
    },
    "Pods": {
        "a label of the operator": _pod(labels={"app.kubernetes.io/name": "other"}),
        "a label that selects": _pod(labels={"espha.dev/role": "active"}),
        "a key that cannot be": _pod(labels={"my label": "x"}),
        "a value that cannot be": _pod(labels={"team": "a b"}),
        "an annotation that unlocks": _pod(
            annotations={"container.apparmor.security.beta.kubernetes.io/kafka": "unconfined"}
        ),
        "a variable of the operator": _pod(env=[{"name": "KAFKA_HEAP_OPTS", "value": "-Xmx9g"}]),
        "a variable twice": _pod(env=[{"name": "A"}, {"name": "A"}]),
        "a variable with two values": _pod(
            env=[
                {
                    "name": "A",
                    "value": "b",
                    "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}},
                }
            ]
        ),
        "a variable that cannot be": _pod(env=[{"name": "1A"}]),
        "a value from nowhere": _pod(env=[{"name": "A", "valueFrom": {}}]),
        "a toleration of everything": _pod(tolerations=[{"effect": "NoSchedule"}]),
        "a value that does not count": _pod(
            tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]
        ),
        "a time without an effect": _pod(
            tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]
        ),
        "a node selector that cannot be": _pod(nodeSelector={"disk": "very fast"}),
        "In without values": _pod(
            affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": NODES}}
        ),
        "greater than a word": _pod(
            affinity={
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": {"matchExpressions": NUMBER}}
                    ]
                }
            }
        ),
        "a weight of nothing": _pod(
            affinity={
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 0, "podAffinityTerm": PODS}
                    ]
                }
            }
        ),
        "a spread twice": _pod(
            topologySpreadConstraints=[{"topologyKey": "zone"}, {"topologyKey": "zone"}]
        ),
        "places that nobody waits for": _pod(
            topologySpreadConstraints=[
                {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 3}
            ]
        ),
        "a priority that cannot be": _pod(priorityClassName="Very High"),
        "an account that cannot be": _pod(serviceAccountName="my_account"),
        "a host's own network": _pod(hostNetwork=True),
    },
}
# What is wrong with a name -> the name.
BAD_NAMES = {
    "a name that is too long": 25 * "a",
    "a name that begins with a digit": "1a",
    "a name with a dot": "a.b",
}


def resource(spec: Object, name: str = "bad") -> Object:
    """Return a resource with a model, if the spec has none."""
    return {
        "apiVersion": "espha.dev/v1alpha1",
        "kind": "EspHaDeployment",
        "metadata": {"name": name},
        "spec": {"model": {"inline": "<project/>"}, **spec},
    }


def every() -> Iterable[tuple[str, str, Object]]:
    """Yield group, what is wrong, and the resource."""
    for group, bad in BAD.items():
        for what, spec in bad.items():
            yield group, what, resource(spec)
    for what, name in BAD_NAMES.items():
        yield "The whole", what, resource({}, name)


def page(answers: dict[tuple[str, str], list[str]]) -> str:
    """Return the page with what the API server says of each.

    Args:
        answers: for group and what is wrong, what the API server says.
    """
    lines = [
        "# What the API server refuses",
        "",
        "Each line is a resource with one mistake, and what the API server says of it. A test asks "
        "the API server of the local cluster about all of them. "
        "`ESPHA_GOLDEN=write pytest tests/cluster/test_refused.py` writes this page.",
    ]
    for group in BAD:
        lines += ["", f"## {group}", "", "| mistake | answer |", "| --- | --- |"]
        lines += [
            f"| {what} | {'<br>'.join(_cell(one) for one in said)} |"
            for (of, what), said in answers.items()
            if of == group
        ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("<nil>: ", "").replace("|", "\\|").replace("<", "&lt;")
