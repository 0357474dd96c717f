# The dev environment: a project of its own, a state of its own. Cheap, and can be taken away: no domain, no protection. What is yours goes into terraform.tfvars.

terraform {
  backend "gcs" {
    prefix = "agent/dev" # the bucket: terraform init -backend-config=bucket=PROJECT-tfstate
  }
}

provider "google" {
  user_project_override = true
  billing_project       = var.project_id
  default_labels        = { managed-by = "terraform" }
}

variable "project_id" {
  type        = string
  description = "The project that bootstrap has prepared."
}

variable "release" {
  type        = string
  description = "The release that is deployed: git describe --tags --always"
}

variable "oauth_client_id" {
  type        = string
  description = "The OAuth client with which users link their Google accounts."
}

module "agent" {
  source = "../../modules/agent"

  environment         = "dev"
  project_id          = var.project_id
  release             = var.release
  archives            = "${path.root}/../../../dist"
  auth                = { issuer = "https://securetoken.google.com/${var.project_id}", audience = var.project_id }
  oauth_client_id     = var.oauth_client_id
  secret_versions     = { chat-key = "1", oauth-client-secret = "1" }
  deletion_protection = false
}

output "agent" {
  description = "Where the agent answers, and as whom."
  value       = module.agent
}
