# Applied once for each project, by a person who owns it; nothing else here enables a service or makes an identity for CI.

terraform {
  required_version = ">= 1.9"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.50, < 9"
    }
  }
}

provider "google" {
  user_project_override = true
  billing_project       = var.project_id
  default_labels        = { managed-by = "terraform" }
}
