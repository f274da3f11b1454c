"""Properties of connectors of databases."""


def postgres_url(connect: str) -> str:
    """Return the address that a connectstring of ODBC says, without its password.

    Empty where it is another database, or only names a source of data that is configured elsewhere.
    """
    pairs = (pair.partition("=") for pair in connect.split(";"))
    told = {name.strip().lower(): value.strip() for name, _, value in pairs}
    host = told.get("server") or told.get("servername") or told.get("host")
    name = told.get("database") or told.get("db")
    if not host or not name or "postgres" not in told.get("driver", "postgres").lower():
        return ""
    user = f"{told['uid']}@" if told.get("uid") else ""
    port = f":{told['port']}" if told.get("port") else ""
    return f"postgresql://{user}{host}{port}/{name}"
