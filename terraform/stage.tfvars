# The stage environment is like prod, but keeps no instances warm. variables.tf lists what else you can set.

environment = "stage"

# project_id      = "acme-stage"
# oauth_client_id = "123-abc.apps.googleusercontent.com"
# domain          = "agent.stage.example.com"
# alert_emails    = ["oncall@example.com"]
