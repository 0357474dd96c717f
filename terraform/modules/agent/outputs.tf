output "url" {
  description = "The address of the page and the API; without a domain, of the page alone."
  value       = local.page
}

output "oauth_redirect" {
  description = "The redirect address that the OAuth client must know."
  value       = "${local.public_url}/api/agent/connections/google/callback"
}

output "github_callback" {
  description = "The callback address that the GitHub App must know; null without one."
  value       = var.github == null ? null : "${local.public_url}/api/agent/connections/github/callback"
}

output "address" {
  description = "The A record of the domain; null without one."
  value       = one([for a in google_compute_global_address.edge : a.address])
}

output "functions" {
  description = "Each function's own address, identity and source."
  value = {
    for name, f in module.function : name => { uri = f.uri, identity = f.identity, archive_sha256 = f.archive_sha256 }
  }
}

output "events" {
  description = "The topic on which others are told of runs, where var.events says so."
  value       = google_pubsub_topic.events.id
}

output "dead_letters" {
  description = "The subscription that dead letters wait in."
  value       = google_pubsub_subscription.dead.id
}
