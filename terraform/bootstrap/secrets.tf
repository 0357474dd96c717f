# An empty secret for each value. A person adds the value, which is never in a state: see the output secrets.

locals {
  parts   = jsondecode(file("${path.module}/../../infra/functions.json")).parts
  secrets = toset(flatten([for p in values(local.parts) : values(try(p.secrets, {}))]))
}

resource "google_secret_manager_secret" "this" {
  for_each = local.secrets

  project   = var.project_id
  secret_id = "${var.prefix}-${each.value}"
  replication {
    user_managed {
      replicas {
        location = var.region
      }
    }
  }
  depends_on = [google_project_service.this]
}
