# The prod environment is the one that users use. variables.tf lists what else you can set.

environment   = "prod"
min_instances = { run = 1, stream = 1, chat = 1 }

# project_id      = "acme-prod"
# oauth_client_id = "123-abc.apps.googleusercontent.com"
# domain          = "agent.example.com"
# alert_emails    = ["oncall@example.com"]
