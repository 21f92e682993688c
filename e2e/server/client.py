"""The client that openapi-python-client made, against a real server."""
import os

from fleet_client import AuthenticatedClient
from fleet_client.api.fleet import read_fleet
from fleet_client.api.incidents import list_incidents, read_incident

client = AuthenticatedClient(base_url=os.environ["URL"], token=open("token").read().strip())
page = list_incidents.sync(client=client, each=True, class_=["host_oom_killed"])
assert {i.id for i in page.items} == {"a", "b"}, page
assert read_incident.sync("a", client=client).namespace == "serving"
assert read_incident.sync_detailed("nothing", client=client).status_code == 404
assert read_fleet.sync(client=client).incidents == 2
