# What others are told of runs, without content: the operator's own subscriptions take it from here. Nothing is published
# before var.events says so.

resource "google_pubsub_topic" "events" {
  project = var.project_id
  name    = "${var.prefix}-events"
  labels  = local.labels
  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }
}
