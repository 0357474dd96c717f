# The dev environment is cheap: it has no domain and no warm instances, and you can destroy it. variables.tf lists what else you can set.

environment         = "dev"
domain              = null # no load balancer: each function has an address of its own
alert_emails        = []
deletion_protection = false

# project_id      = "acme-dev"
# oauth_client_id = "123-abc.apps.googleusercontent.com"
