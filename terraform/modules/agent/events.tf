# Events about runs, without content: a topic for the operator's subscribers, and a push to the function notify for each
# webhook and one for users' devices. Nothing is published unless var.events, var.webhooks or var.devices is set.

locals {
  webhooks = toset(try(var.webhooks.names, []))
  told     = var.events || var.devices || length(local.webhooks) > 0

  # The path at which notify receives the events of each.
  tellings = merge(
    { for name in local.webhooks : "/${name}" => "${var.prefix}-webhook-${name}" },
    var.devices ? { "" = "${var.prefix}-people" } : {},
  )
}

resource "google_pubsub_topic" "events" {
  project = var.project_id
  name    = "${var.prefix}-events"
  labels  = local.labels
  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }
}

# A webhook that is down does not delay the others. An event that it has not accepted after some 16 hours is a dead letter.
resource "google_pubsub_subscription" "webhook" {
  for_each = local.tellings

  project                    = var.project_id
  name                       = each.value
  topic                      = google_pubsub_topic.events.id
  labels                     = local.labels
  ack_deadline_seconds       = 60
  message_retention_duration = "604800s"
  enable_message_ordering    = true # keeps the order of a run's events

  expiration_policy {
    ttl = ""
  }
  push_config {
    push_endpoint = "${module.function["notify"].uri}/api/agent/notify${each.key}"
    oidc_token {
      service_account_email = google_service_account.push.email
      audience              = module.function["notify"].uri
    }
  }
  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }
  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.events_dead.id
    max_delivery_attempts = 100 # the maximum
  }
  depends_on = [google_service_account_iam_member.push_token]
}

resource "google_pubsub_topic" "events_dead" {
  project = var.project_id
  name    = "${var.prefix}-events-dead"
  labels  = local.labels
  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }
}

resource "google_pubsub_subscription" "events_dead" {
  project                    = var.project_id
  name                       = "${var.prefix}-events-dead"
  topic                      = google_pubsub_topic.events_dead.id
  labels                     = local.labels
  ack_deadline_seconds       = 60
  message_retention_duration = "604800s"
  expiration_policy {
    ttl = ""
  }
}

resource "google_pubsub_topic_iam_member" "events_dead" {
  project = var.project_id
  topic   = google_pubsub_topic.events_dead.name
  role    = "roles/pubsub.publisher"
  member  = local.pubsub_agent
}

resource "google_pubsub_subscription_iam_member" "events_dead" {
  for_each = local.tellings

  project      = var.project_id
  subscription = google_pubsub_subscription.webhook[each.key].name
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent
}
