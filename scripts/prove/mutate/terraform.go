package mutate

import "path"

// rules are the tests of one directory of terraform/, by the last part of its name.
func rules(of string) []test {
	return []test{{"./scripts/terraform", "TestTerraform/^" + of + "$", ""}}
}

// in returns a mutation of one file of terraform/; the directory's own rules must notice it.
func in(file, name, old, new string) mutation {
	dir := path.Base(path.Dir(file))
	return mutation{"terraform: " + name, "terraform/" + file, []edit{{old, new}}, rules(dir)}
}

// terraform are mistakes in what is deployed that no other test would notice before they did harm.
var terraform = []mutation{
	in("bootstrap/github.tf", "any branch writes the state", `state  = "roles/storage.objectViewer"`, `state  = "roles/storage.objectUser"`),
	in("bootstrap/github.tf", "any branch reads all content", `roles  = []`, `roles  = ["roles/viewer"]`),
	in("bootstrap/github.tf", "any branch applies", `${local.pool}/attribute.environment/${var.github.environment}`,
		`${local.pool}/attribute.repository_id/${var.github.repository_id}`),
	in("bootstrap/github.tf", "forks sign in", ` && assertion.event_name != 'pull_request_target'`, ``),
	in("bootstrap/github.tf", "apply grants any role", `.hasOnly([`, `.size() > 0 || [].hasOnly([`),
	in("bootstrap/state.tf", "a state without versions", `enabled = true`, `enabled = false`),
	in("bootstrap/state.tf", "a state with inherited public access", `"enforced"`, `"inherited"`),
	in("modules/agent/build.tf", "archives without versions", `enabled = true`, `enabled = false`),
	in("modules/agent/build.tf", "archives with inherited public access", `"enforced"`, `"inherited"`),
	in("modules/agent/alerts.tf", "the dead letters' alert on another metric", `num_undelivered_messages`, `num_outstanding_messages`),
	in("modules/agent/alerts.tf", "the sweep's alert on another function", `module.function["sweep"].name`, `module.function["resume"].name`),
	in("modules/agent/alerts.tf", "alerts that reach no one", `notification_channels = local.channels`, `notification_channels = []`),
	in("modules/agent/sweep.tf", "a token for another audience", `audience              = module.function["sweep"].uri`,
		`audience              = module.function["resume"].uri`),
	in("modules/agent/sweep.tf", "an hourly sweep", `"* * * * *"`, `"0 * * * *"`),
	in("modules/agent/throttle.tf", "a throttle that allows", `"deny(429)"`, `"allow"`),
	in("modules/agent/edge.tf", "a backend that is not throttled", `security_policy       = google_compute_security_policy.throttle["this"].id`,
		`security_policy       = null`),
	in("modules/agent/audit_log.tf", "no record of who read secrets and used keys",
		`"secretmanager.googleapis.com", "cloudkms.googleapis.com", `, ``),
	in("modules/agent/tokens.tf", "a tokens' key that is gone after a day", `"2592000s"`, `"86400s"`),
	in("modules/agent/tokens.tf", "a tokens' key that stays for ever", `"7776000s"`, `"77760000s"`),
	in("modules/agent/queue.tf", "a hundred delivery attempts", `max_delivery_attempts = 10`, `max_delivery_attempts = 100`),
	in("modules/agent/queue.tf", "a push for another audience", `audience              = module.function["resume"].uri`,
		`audience              = module.function["sweep"].uri`),
	in("modules/agent/queue.tf", "a second delivery during the first", `ack_deadline_seconds       = 600`, `ack_deadline_seconds       = 60`),
	in("modules/agent/queue.tf", "a dead-letter grant to the push identity", `topic   = google_pubsub_topic.dead.name
  role    = "roles/pubsub.publisher"
  member  = local.pubsub_agent`, `topic   = google_pubsub_topic.dead.name
  role    = "roles/pubsub.publisher"
  member  = google_service_account.push.member`),
	in("modules/agent/store.tf", "a database that cannot go back", `POINT_IN_TIME_RECOVERY_ENABLED`, `POINT_IN_TIME_RECOVERY_DISABLED`),
	in("envs/dev/main.tf", "declared agents that are not passed on", `agents              = var.agents`, `agents              = null`),
	in("envs/stage/main.tf", "declared actions that are not passed on", `actions         = var.actions`, `actions         = null`),
	in("envs/prod/main.tf", "a pinned version that is not passed on", `"1" }, var.secret_versions)`, `"1", action-key = "1" }, {})`),
	in("modules/agent/redirect.tf", "plain http", `https_redirect         = true`, `https_redirect         = false`),
}
