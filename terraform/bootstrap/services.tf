# The services that the environment uses. Destroying this configuration leaves them enabled, because other resources may use them.

resource "google_project_service" "this" {
  for_each = toset([
    "aiplatform", "artifactregistry", "billingbudgets", "calendar-json", "cloudbuild", "cloudfunctions", "cloudkms", "cloudresourcemanager", "cloudscheduler",
    "compute", "firebaserules", "firestore", "gmail", "iam", "iamcredentials", "identitytoolkit", "logging", "monitoring", "pubsub", "run", "secretmanager", "storage", "sts",
  ])

  project            = var.project_id
  service            = "${each.value}.googleapis.com"
  disable_on_destroy = false
}
