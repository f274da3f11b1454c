"""Windows for tests of what takes their results."""

from espha.model import Window
from espha.reader import read_project

_MODEL = """
<project name="p" pubsub="none"><contqueries><contquery name="cq"><windows>
<window-source name="s"><schema><fields>{fields}</fields></schema>
<connectors><connector class="kafka" name="k"><properties>
<property name="type">sub</property><property name="kafkatype">{kind}</property>
<property name="kafkahostport">h:1</property><property name="kafkatopic">t</property>
</properties></connector></connectors>
</window-source></windows></contquery></contqueries></project>
"""


def outbound(schema: str = "id*:int64,name:string,value:double", kind: str = "csv") -> Window:
    """Return a window with these fields and a Kafka subscriber."""
    fields = "".join(
        f'<field name="{name.rstrip("*")}" type="{type_}" key="{str(name.endswith("*")).lower()}"/>'
        for name, type_ in (part.split(":") for part in schema.split(","))
    )
    return read_project(_MODEL.format(fields=fields, kind=kind).encode()).windows["cq/s"]
