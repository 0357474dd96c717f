# The function's identity. It has only the roles of the function's parts.

resource "google_service_account" "runtime" {
  project      = var.project_id
  account_id   = local.name
  display_name = "Countersign function ${var.name}"
}

resource "google_project_iam_member" "project" {
  for_each = toset([for r in var.roles : r.role if r.on == "project"])

  project = var.project_id
  role    = each.value
  member  = google_service_account.runtime.member
}

# Firestore has no grants on a database: a condition restricts the project's grant to one database.
resource "google_project_iam_member" "database" {
  for_each = toset([for r in var.roles : r.role if r.on == "database"])

  project = var.project_id
  role    = each.value
  member  = google_service_account.runtime.member
  condition {
    title      = "the agent's database only"
    expression = "resource.name == '${var.on.database}'"
  }
}

resource "google_pubsub_topic_iam_member" "topic" {
  for_each = toset([for r in var.roles : r.role if r.on == "topic"])

  project = var.project_id
  topic   = var.on.topic
  role    = each.value
  member  = google_service_account.runtime.member
}

resource "google_pubsub_topic_iam_member" "sweeps" {
  for_each = toset([for r in var.roles : r.role if r.on == "sweeps"])

  project = var.project_id
  topic   = var.on.sweeps
  role    = each.value
  member  = google_service_account.runtime.member
}

resource "google_pubsub_topic_iam_member" "events" {
  for_each = toset([for r in var.roles : r.role if r.on == "events"])

  project = var.project_id
  topic   = var.on.events
  role    = each.value
  member  = google_service_account.runtime.member
}

resource "google_kms_crypto_key_iam_member" "tokens" {
  for_each = toset([for r in var.roles : r.role if r.on == "tokens"])

  crypto_key_id = var.on.tokens
  role          = each.value
  member        = google_service_account.runtime.member
}

resource "google_kms_crypto_key_iam_member" "receipts" {
  for_each = toset([for r in var.roles : r.role if r.on == "receipts"])

  crypto_key_id = var.on.receipts
  role          = each.value
  member        = google_service_account.runtime.member
}

resource "google_kms_crypto_key_iam_member" "decisions" {
  for_each = toset([for r in var.roles : r.role if r.on == "decisions"])

  crypto_key_id = var.on.decisions
  role          = each.value
  member        = google_service_account.runtime.member
}

resource "google_kms_crypto_key_iam_member" "enrolment" {
  for_each = toset([for r in var.roles : r.role if r.on == "enrolment"])

  crypto_key_id = var.on.enrolment
  role          = each.value
  member        = google_service_account.runtime.member
}

resource "google_storage_bucket_iam_member" "files" {
  for_each = toset([for r in var.roles : r.role if r.on == "files"])

  bucket = var.on.files
  role   = each.value
  member = google_service_account.runtime.member
}

resource "google_storage_bucket_iam_member" "log" {
  for_each = toset([for r in var.roles : r.role if r.on == "log"])

  bucket = var.on.log
  role   = each.value
  member = google_service_account.runtime.member
}

resource "google_storage_bucket_iam_member" "checkpoint" {
  for_each = toset([for r in var.roles : r.role if r.on == "checkpoint"])

  bucket = var.on.log
  role   = each.value
  member = google_service_account.runtime.member
  condition {
    title      = "only the checkpoint"
    expression = "resource.name == 'projects/_/buckets/${var.on.log}/objects/checkpoint'"
  }
}

resource "google_kms_crypto_key_iam_member" "log" {
  for_each = toset([for r in var.roles : r.role if r.on == "log-key"])

  crypto_key_id = var.on.log_key
  role          = each.value
  member        = google_service_account.runtime.member
}

resource "google_secret_manager_secret_iam_member" "runtime" {
  for_each = var.secrets

  project   = var.project_id
  secret_id = each.value.secret
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.runtime.member
}
