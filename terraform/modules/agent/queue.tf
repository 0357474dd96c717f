# Resumes of runs: a topic, its push to each resume function, and the dead letters.

locals {
  # Each function with the agents whose runs it advances. The one without agents advances all other runs, but never those
  # of a function that is not deployed.
  resumes     = { for name, f in local.functions : name => try(f.agents, []) if f.callers == "queue" }
  is_of       = { for f in local.list.functions : f.name => join(" OR ", [for a in try(f.agents, []) : "attributes.agent = \"${a}\""]) }
  is_of_other = join(" OR ", [for f in local.list.functions : local.is_of[f.name] if try(length(f.agents), 0) > 0])

  # Refers to subscriptions by name: a subscription depends on its function's address, and the function on the subscription's name.
  resume_names = { for name, agents in local.resumes : name => "${var.prefix}-${name}-push" }

  pubsub_agent = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}

resource "google_pubsub_topic" "resume" {
  project                    = var.project_id
  name                       = "${var.prefix}-resume"
  labels                     = local.labels
  message_retention_duration = "604800s"
  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }
}

resource "google_service_account" "push" {
  project      = var.project_id
  account_id   = "${var.prefix}-push"
  display_name = "Countersign: Pub/Sub's push to resume"
}

resource "google_service_account_iam_member" "push_token" {
  service_account_id = google_service_account.push.name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = local.pubsub_agent
}

resource "google_pubsub_subscription" "resume" {
  for_each = local.resumes

  project                    = var.project_id
  name                       = local.resume_names[each.key]
  topic                      = google_pubsub_topic.resume.id
  filter                     = length(each.value) > 0 ? local.is_of[each.key] : local.is_of_other == "" ? null : "NOT (${local.is_of_other})"
  labels                     = local.labels
  ack_deadline_seconds       = 600 # the maximum
  message_retention_duration = "604800s"
  enable_message_ordering    = false # one poisoned message would delay the run's others; the lease keeps the order

  expiration_policy {
    ttl = "" # never: by default an inactive subscription is deleted after 31 days
  }
  push_config {
    push_endpoint = module.function[each.key].uri
    oidc_token {
      service_account_email = google_service_account.push.email
      audience              = module.function[each.key].uri
    }
  }
  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }
  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead.id
    max_delivery_attempts = 10
  }

  lifecycle {
    precondition {
      condition     = local.functions[each.key].timeoutSeconds < 600
      error_message = "${each.key} runs ${local.functions[each.key].timeoutSeconds} s, and Pub/Sub waits at most 600 s: it would redeliver the message while the first delivery is still being processed. Lower timeoutSeconds in infra/functions.json."
    }
  }
  depends_on = [google_service_account_iam_member.push_token]
}

moved {
  from = google_pubsub_subscription.resume
  to   = google_pubsub_subscription.resume["resume"]
}

resource "google_pubsub_topic" "dead" {
  project = var.project_id
  name    = "${var.prefix}-resume-dead"
  labels  = local.labels
  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }
}

# Without a subscription, the messages of a topic are lost.
resource "google_pubsub_subscription" "dead" {
  project                    = var.project_id
  name                       = "${var.prefix}-resume-dead"
  topic                      = google_pubsub_topic.dead.id
  labels                     = local.labels
  ack_deadline_seconds       = 60
  message_retention_duration = "604800s"
  expiration_policy {
    ttl = ""
  }
}

# Pub/Sub's service agent moves the dead letters. Without these two grants it redelivers forever, without an error.
resource "google_pubsub_topic_iam_member" "dead" {
  project = var.project_id
  topic   = google_pubsub_topic.dead.name
  role    = "roles/pubsub.publisher"
  member  = local.pubsub_agent
}

resource "google_pubsub_subscription_iam_member" "dead" {
  for_each = local.resumes

  project      = var.project_id
  subscription = google_pubsub_subscription.resume[each.key].name
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent
}

moved {
  from = google_pubsub_subscription_iam_member.dead
  to   = google_pubsub_subscription_iam_member.dead["resume"]
}
