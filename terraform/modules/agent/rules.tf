# Clients have no direct access to the database, whoever is signed in. The functions' identities are not subject to
# these rules.

resource "google_firebaserules_ruleset" "deny" {
  project = var.project_id
  source {
    files {
      name    = "firestore.rules"
      content = file("${local.infra}/firestore.rules")
    }
  }
  lifecycle {
    create_before_destroy = true
  }
}

resource "google_firebaserules_release" "deny" {
  project      = var.project_id
  name         = "cloud.firestore/${google_firestore_database.agent.name}"
  ruleset_name = google_firebaserules_ruleset.deny.name
  lifecycle {
    replace_triggered_by = [google_firebaserules_ruleset.deny]
  }
}
