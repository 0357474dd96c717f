# The work that one sweep has no time for: a topic, and its push to the function sweep.

locals {
  sweep_name = "${var.prefix}-sweep-push" # by name: the subscription depends on the function's address, and the function on this name
}

resource "google_pubsub_topic" "sweep" {
  project = var.project_id
  name    = "${var.prefix}-sweep"
  labels  = local.labels
  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }
}

# A message that is not accepted is dropped: the next sweep finds the due runs anyway.
resource "google_pubsub_subscription" "sweep" {
  project                    = var.project_id
  name                       = local.sweep_name
  topic                      = google_pubsub_topic.sweep.id
  labels                     = local.labels
  ack_deadline_seconds       = 600
  message_retention_duration = "600s" # the minimum

  expiration_policy {
    ttl = ""
  }
  push_config {
    push_endpoint = module.function["sweep"].uri
    oidc_token {
      service_account_email = google_service_account.scheduler.email # the only caller that sweep accepts
      audience              = module.function["sweep"].uri
    }
  }
  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "60s"
  }

  lifecycle {
    precondition {
      condition     = local.functions["sweep"].timeoutSeconds < 600
      error_message = "sweep runs ${local.functions["sweep"].timeoutSeconds} s, and Pub/Sub waits at most 600 s. Lower timeoutSeconds in infra/functions.json."
    }
  }
  depends_on = [google_service_account_iam_member.sweep_token]
}

resource "google_service_account_iam_member" "sweep_token" {
  service_account_id = google_service_account.scheduler.name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = local.pubsub_agent
}
