output "url" {
  description = "The address of the console and the API; without a domain, only of the console."
  value       = local.page
}

output "oauth_redirect" {
  description = "The redirect address to enter at the OAuth client."
  value       = "${local.public_url}/api/agent/connections/google/callback"
}

output "github_callback" {
  description = "The callback address to enter at the GitHub App; null without an App."
  value       = var.github == null ? null : "${local.public_url}/api/agent/connections/github/callback"
}

output "address" {
  description = "The IP address for the domain's A record; null without a domain."
  value       = one([for a in google_compute_global_address.edge : a.address])
}

output "functions" {
  description = "The address, identity and source of each function."
  value = {
    for name, f in module.function : name => { uri = f.uri, identity = f.identity, archive_sha256 = f.archive_sha256 }
  }
}

output "events" {
  description = "The topic with events about runs; null unless var.events is true."
  value       = google_pubsub_topic.events.id
}

output "dead_letters" {
  description = "The subscription with the dead letters."
  value       = google_pubsub_subscription.dead.id
}
