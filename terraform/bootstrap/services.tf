# The services that the environment uses. Switching one off with the configuration would take others' with it.

resource "google_project_service" "this" {
  for_each = toset([
    "aiplatform", "artifactregistry", "calendar-json", "cloudbuild", "cloudfunctions", "cloudkms", "cloudscheduler", "cloudtrace", "compute",
    "firebaserules", "firestore", "gmail", "iam", "iamcredentials", "logging", "monitoring", "pubsub", "run", "secretmanager", "storage", "sts",
  ])

  project            = var.project_id
  service            = "${each.value}.googleapis.com"
  disable_on_destroy = false
}
