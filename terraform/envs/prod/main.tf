# The prod environment: a project of its own, a state of its own. Only what is different here is said here.

terraform {
  backend "gcs" {
    prefix = "agent/prod" # the bucket: terraform init -backend-config=bucket=PROJECT-tfstate
  }
}

provider "google" {
  user_project_override = true
  billing_project       = var.project_id
  default_labels        = { managed-by = "terraform" }
}

variable "project_id" {
  type        = string
  description = "The project of this environment."
}

variable "release" {
  type        = string
  description = "The release that is deployed, such as a tag; git describe --always tells one."
}

module "agent" {
  source      = "../../modules/agent"
  environment = "prod"
  project_id  = var.project_id
  release     = var.release
  archives    = "${path.root}/../../../dist"

  auth            = { issuer = "https://securetoken.google.com/${var.project_id}", audience = var.project_id }
  oauth_client_id = "123456789012-replace-me.apps.googleusercontent.com"
  secret_versions = { chat-key = "1", oauth-client-secret = "1" }
  domain          = "agent.example.com"
  alert_emails    = ["oncall@example.com"]
  min_instances   = { run = 1, stream = 1, chat = 1 }
}

output "agent" {
  description = "What the agent answers at."
  value       = module.agent
}
