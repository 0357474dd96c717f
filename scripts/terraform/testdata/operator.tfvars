# An operator's values. The variable files of the environments have the rest.
project_id      = "acme-agent"
release         = "v1.2.3"
oauth_client_id = "123-abc.apps.googleusercontent.com"
domain          = "agent.acme.com"
alert_emails    = ["oncall@acme.com"]
