# What is made, and that it goes together. The provider is a mock: nothing is asked of Google, and every computed value
# (an address, an e-mail) is made up and different for each resource.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
}

# Values that the functions check when they start have the form that Google gives them.
override_resource {
  target = google_service_account.push
  values = { email = "agent-push@acme-prod.iam.gserviceaccount.com", member = "serviceAccount:agent-push@acme-prod.iam.gserviceaccount.com" }
}
override_resource {
  target = google_service_account.scheduler
  values = { email = "agent-scheduler@acme-prod.iam.gserviceaccount.com", member = "serviceAccount:agent-scheduler@acme-prod.iam.gserviceaccount.com" }
}
override_resource {
  target = google_pubsub_topic.resume
  values = { id = "projects/acme-prod/topics/agent-resume" }
}
override_resource {
  target = google_pubsub_topic.sweep
  values = { id = "projects/acme-prod/topics/agent-sweep" }
}
override_resource {
  target = google_kms_crypto_key.tokens
  values = { id = "projects/acme-prod/locations/europe-west1/keyRings/agent/cryptoKeys/oauth-tokens" }
}
override_resource {
  target = google_kms_crypto_key.decisions
  values = { id = "projects/acme-prod/locations/europe-west1/keyRings/agent/cryptoKeys/decisions" }
}

variables {
  decisions       = { public_keys = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=" }
  project_id      = "acme-prod"
  environment     = "prod"
  release         = "v1.2.3"
  archives        = "../../../dist"
  auth            = { issuer = "https://securetoken.google.com/acme-prod", audience = "acme-prod" }
  oauth_client_id = "123-abc.apps.googleusercontent.com"
  secret_versions = { chat-key = "1", oauth-client-secret = "1" }
  domain          = "agent.acme.com"
  alert_emails    = ["oncall@acme.com"]
}

run "prod" {
  assert {
    condition     = toset(keys(module.function)) == toset([for f in jsondecode(file("../../../infra/functions.json")).functions : f.name])
    error_message = "Every function of infra/functions.json is deployed, and no other."
  }
  assert {
    condition     = length(distinct([for f in values(module.function) : f.identity])) == length(module.function)
    error_message = "Every function is its own identity."
  }
  assert {
    condition     = toset([for name, f in module.function : name if f.ingress == "ALLOW_INTERNAL_ONLY"]) == toset(["notify", "resume", "resume-plan", "resume-terminal", "sweep"])
    error_message = "What moves runs is reached from inside only; behind a load balancer the others are reached through it."
  }
  assert {
    condition     = alltrue([for f in values(module.function) : f.ingress != "ALLOW_ALL"])
    error_message = "With a domain nothing goes around the load balancer."
  }
  assert {
    condition     = toset([for name, f in module.function : name if f.invoker == "allUsers"]) == toset(keys(local.public))
    error_message = "Everyone may call the public functions and no other."
  }
  assert {
    condition     = module.function["resume"].invoker == google_service_account.push.member && module.function["sweep"].invoker == google_service_account.scheduler.member
    error_message = "resume is called by the push identity, sweep by the scheduler's."
  }
  assert {
    condition     = google_pubsub_subscription.resume["resume"].push_config[0].push_endpoint == module.function["resume"].uri && google_pubsub_subscription.resume["resume"].push_config[0].oidc_token[0].audience == module.function["resume"].uri
    error_message = "Pub/Sub pushes to resume, with its address as the audience."
  }
  assert {
    condition     = google_pubsub_subscription.resume["resume"].push_config[0].oidc_token[0].service_account_email == google_service_account.push.email
    error_message = "Pub/Sub pushes as the push identity."
  }
  assert {
    condition     = { for name, s in google_pubsub_subscription.resume : name => s.filter } == { resume = "NOT (attributes.agent = \"terminal\" OR attributes.agent = \"terminal-chat\" OR attributes.agent = \"planner\")", resume-plan = "attributes.agent = \"planner\"", resume-terminal = "attributes.agent = \"terminal\" OR attributes.agent = \"terminal-chat\"" }
    error_message = "Messages about runs on terminals are resume-terminal's, those about plans resume-plan's, and all others are resume's."
  }
  assert {
    condition     = google_pubsub_subscription.resume["resume"].ack_deadline_seconds > local.functions["resume"].timeoutSeconds
    error_message = "Pub/Sub waits longer than resume may run, or a message is delivered while the first is at work."
  }
  assert {
    condition     = google_pubsub_subscription.resume["resume"].expiration_policy[0].ttl == "" && google_pubsub_subscription.dead.expiration_policy[0].ttl == ""
    error_message = "A quiet subscription never expires."
  }
  assert {
    condition     = google_pubsub_subscription.resume["resume"].dead_letter_policy[0].dead_letter_topic == google_pubsub_topic.dead.id && google_pubsub_subscription.dead.topic == google_pubsub_topic.dead.id
    error_message = "Dead letters go to a topic that has a subscription."
  }
  assert {
    condition = (
      google_pubsub_topic_iam_member.dead.role == "roles/pubsub.publisher" && google_pubsub_subscription_iam_member.dead["resume"].role == "roles/pubsub.subscriber"
      && toset([google_pubsub_topic_iam_member.dead.member, google_pubsub_subscription_iam_member.dead["resume"].member, google_service_account_iam_member.push_token.member])
      == toset(["serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"])
    )
    error_message = "Pub/Sub's own agent may move dead letters and make the push identity's tokens."
  }
  assert {
    condition     = google_pubsub_subscription.resume["resume"].dead_letter_policy[0].max_delivery_attempts == 10
    error_message = "After ten deliveries a message is a dead letter, and somebody is told."
  }
  assert {
    condition     = google_cloud_scheduler_job.sweep.schedule == "* * * * *" && google_cloud_scheduler_job.sweep.time_zone == "Etc/UTC"
    error_message = "Every minute there is a sweep."
  }
  assert {
    condition     = google_cloud_scheduler_job.sweep.http_target[0].oidc_token[0].audience == module.function["sweep"].uri
    error_message = "The scheduler's token is for sweep's address."
  }
  assert {
    condition     = google_cloud_scheduler_job.sweep.http_target[0].uri == module.function["sweep"].uri && google_cloud_scheduler_job.sweep.http_target[0].oidc_token[0].service_account_email == google_service_account.scheduler.email
    error_message = "The scheduler calls sweep as its own identity."
  }
  assert {
    condition = (
      google_pubsub_subscription.sweep.push_config[0].push_endpoint == module.function["sweep"].uri && google_pubsub_subscription.sweep.push_config[0].oidc_token[0].audience == module.function["sweep"].uri
      && google_pubsub_subscription.sweep.push_config[0].oidc_token[0].service_account_email == google_service_account.scheduler.email
      && google_service_account_iam_member.sweep_token.member == "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
    )
    error_message = "What a sweep hands on is pushed to sweep, as the one identity that it takes calls from."
  }
  assert {
    condition     = google_pubsub_subscription.sweep.topic == google_pubsub_topic.sweep.id && google_pubsub_subscription.sweep.expiration_policy[0].ttl == "" && google_pubsub_subscription.sweep.ack_deadline_seconds > local.functions["sweep"].timeoutSeconds
    error_message = "The subscription of sweeps never expires, and waits longer than sweep may run."
  }
  assert {
    condition     = google_firestore_database.agent.name != "(default)" && google_firestore_database.agent.point_in_time_recovery_enablement == "POINT_IN_TIME_RECOVERY_ENABLED" && google_firestore_database.agent.delete_protection_state == "DELETE_PROTECTION_ENABLED" && google_firestore_database.agent.deletion_policy == "ABANDON"
    error_message = "The database has a name, goes back to any point in a week, and is not deleted."
  }
  assert {
    condition     = length(google_firestore_index.this) == length(local.firestore.indexes) && [for k, f in google_firestore_field.this : k if length(f.ttl_config) > 0] == ["audit-expireAt", "audit_heads-expireAt", "oauth_states-expireAt"]
    error_message = "Every index and every expiry of infra/firestore-indexes.json is made."
  }
  assert {
    condition     = google_firestore_backup_schedule.daily.retention == "604800s" && google_firestore_backup_schedule.weekly.retention == "8467200s"
    error_message = "Backups of each day are kept a week, of each week 14 weeks."
  }
  assert {
    condition     = strcontains(google_firebaserules_ruleset.deny.source[0].files[0].content, "allow read, write: if false;") && google_firebaserules_release.deny.name == "cloud.firestore/agent-store"
    error_message = "The rules that deny all are released to the database."
  }
  assert {
    condition     = google_kms_crypto_key.tokens.rotation_period == "7776000s" && google_kms_crypto_key.tokens.destroy_scheduled_duration == "2592000s"
    error_message = "The tokens' key is rotated every 90 days, and a version that was destroyed can be restored for 30."
  }
  assert {
    condition     = google_storage_bucket.source.versioning[0].enabled && google_storage_bucket.source.public_access_prevention == "enforced" && google_storage_bucket.source.uniform_bucket_level_access
    error_message = "Archives are versioned and never public."
  }
  assert {
    condition     = google_storage_bucket.files[0].public_access_prevention == "enforced" && google_storage_bucket.files[0].uniform_bucket_level_access && google_storage_bucket.files[0].soft_delete_policy[0].retention_duration_seconds == 0 && length(google_storage_bucket.files[0].versioning) == 0
    error_message = "Uploaded files are never public, and their deletion is final."
  }
  assert {
    condition     = { for path in ["/api/agent/agents", "/api/agent/runs/x", "/api/agent/runs/x/events", "/api/agent/terminals/x", "/api/agent/terminals/x/socket", "/api/agent/plans", "/api/agent/plans/x", "/api/agent/plans/x/grants/x"] : path => one([for t in google_compute_url_map.edge["this"].test : t.service if t.path == path]) } == { for path, name in { "/api/agent/agents" = "runs", "/api/agent/runs/x" = "runs", "/api/agent/runs/x/events" = "runs", "/api/agent/terminals/x" = "terminals", "/api/agent/terminals/x/socket" = "terminal-attach", "/api/agent/plans" = "plans", "/api/agent/plans/x" = "plans", "/api/agent/plans/x/grants/x" = "plans" } : path => google_compute_backend_service.function[name].id }
    error_message = "A path with a variable part leads to its function."
  }
  assert {
    condition     = length(local.routed) == length(distinct([for r in local.routed : r.path])) && tolist([for r in google_compute_url_map.edge["this"].path_matcher[0].route_rules : r.priority]) == tolist(range(1, length(local.routed) + 1))
    error_message = "No path leads to two functions."
  }
  assert {
    condition     = alltrue([for path in ["/api/agent/resume", "/api/agent/sweep", "/"] : one([for t in google_compute_url_map.edge["this"].test : t.service if t.path == path]) == google_compute_backend_service.function["web"].id])
    error_message = "From outside, what resume and sweep serve is not there."
  }
  assert {
    condition     = !contains(keys(google_compute_backend_service.function), "resume") && !contains(keys(google_compute_backend_service.function), "sweep")
    error_message = "The load balancer has no way to resume and sweep."
  }
  assert {
    condition     = alltrue([for b in values(google_compute_backend_service.function) : b.security_policy == google_compute_security_policy.throttle["this"].id])
    error_message = "Every backend is throttled."
  }
  assert {
    condition = alltrue([for r in google_compute_security_policy.throttle["this"].rule : (
      r.action == "throttle" && r.rate_limit_options[0].exceed_action == "deny(429)" && r.rate_limit_options[0].enforce_on_key == "IP"
      && r.rate_limit_options[0].rate_limit_threshold[0].count == var.requests_per_minute && r.rate_limit_options[0].rate_limit_threshold[0].interval_sec == 60
      && tolist(r.match[0].config[0].src_ip_ranges) == tolist(["*"])
    ) if r.priority == 1000]) && [for r in google_compute_security_policy.throttle["this"].rule : r.action if r.priority != 1000] == ["allow"]
    error_message = "Every address is throttled: what it asks for beyond its share is denied."
  }
  assert {
    condition     = google_compute_url_map.redirect["this"].default_url_redirect[0].https_redirect && google_compute_managed_ssl_certificate.edge["this"].managed[0].domains == tolist(["agent.acme.com"])
    error_message = "HTTP leads to HTTPS, and the domain has its certificate."
  }
  assert {
    condition     = toset([for f in fileset("../../../infra/runbooks", "*.md") : trimsuffix(f, ".md")]) == toset(concat(keys(google_monitoring_alert_policy.this), keys(local.measured), ["events-lag"]))
    error_message = "One runbook for each alert, and one alert for each runbook."
  }
  assert {
    condition     = alltrue([for a in values(google_monitoring_alert_policy.this) : length(a.notification_channels) == 1 && length(a.documentation[0].content) < 8192])
    error_message = "Somebody is told of every alert, with its runbook."
  }
  assert {
    condition = google_monitoring_alert_policy.this["dead-letter"].conditions[0].condition_threshold[0].filter == join(" AND ", [
      "metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\"",
      "resource.type=\"pubsub_subscription\"",
      "resource.labels.subscription_id=one_of(\"${google_pubsub_subscription.dead.name}\",\"${google_pubsub_subscription.events_dead.name}\")",
    ]) && google_monitoring_alert_policy.this["dead-letter"].conditions[0].condition_threshold[0].threshold_value == 0
    error_message = "A single dead letter is told."
  }
  assert {
    condition = google_monitoring_alert_policy.this["resume-lag"].conditions[0].condition_threshold[0].filter == join(" AND ", [
      "metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\"",
      "resource.type=\"pubsub_subscription\"",
      "resource.labels.subscription_id=one_of(\"${google_pubsub_subscription.resume["resume"].name}\",\"${google_pubsub_subscription.resume["resume-plan"].name}\",\"${google_pubsub_subscription.resume["resume-terminal"].name}\",\"${google_pubsub_subscription.sweep.name}\")",
    ])
    error_message = "It is told that approved runs wait."
  }
  assert {
    condition = google_monitoring_alert_policy.this["sweep-silent"].conditions[0].condition_absent[0].filter == join(" AND ", [
      "metric.type=\"run.googleapis.com/request_count\"",
      "resource.type=\"cloud_run_revision\"",
      "resource.labels.service_name=\"agent-sweep\"",
      "metric.labels.response_code_class=\"2xx\"",
    ])
    error_message = "It is told that no sweep succeeds."
  }
  assert {
    condition     = strcontains(google_monitoring_alert_policy.this["secret-read"].conditions[0].condition_matched_log[0].filter, "AccessSecretVersion$") && strcontains(google_monitoring_alert_policy.this["secret-read"].conditions[0].condition_matched_log[0].filter, "Decrypt$")
    error_message = "It is told that a person reads a secret."
  }
  assert {
    condition = alltrue([for alert, counters in { run-aside = ["run_aside"], step-given-up = ["step_given_up", "tool_panic"] } : alltrue([for c in counters :
    strcontains(google_monitoring_alert_policy.this[alert].conditions[0].condition_matched_log[0].filter, "jsonPayload.counter=\"${c}\"")])])
    error_message = "It is told that a run was put aside, and that a step was given up."
  }
  assert {
    condition = { for s, c in google_project_iam_audit_config.data_access : s => toset([for l in c.audit_log_config : l.log_type]) } == { for s in [
      "secretmanager.googleapis.com", "cloudkms.googleapis.com", "datastore.googleapis.com",
    ] : s => toset(["DATA_READ", "DATA_WRITE"]) }
    error_message = "Who reads secrets, uses keys and reads users' data is in the audit's log."
  }
  assert {
    condition     = alltrue([for c in values(google_project_iam_audit_config.data_access) : alltrue([for l in c.audit_log_config : try(length(l.exempted_members), 0) == 0])])
    error_message = "Nobody is exempt from it."
  }
  assert {
    condition     = { for name, a in google_monitoring_alert_policy.this : name => length(a.conditions) if length(a.conditions) != 1 } == { error-budget = 2 }
    error_message = "Every alert has its one condition; the burn rate has two, of which both must hold."
  }
  assert {
    condition     = length(google_monitoring_dashboard.this) == length(fileset("../../../infra/dashboards", "*.json")) - 1 && alltrue([for d in values(google_monitoring_dashboard.this) : can(jsondecode(d.dashboard_json))])
    error_message = "Every dashboard is there and is JSON, but for that of metrics."
  }
  assert {
    condition     = google_logging_project_bucket_config.audit.retention_days == 400 && google_logging_project_bucket_config.audit.locked == false
    error_message = "The audit's log is kept 400 days, and locked only when somebody says so."
  }
  assert {
    condition     = !contains(flatten([for s in values(local.secrets_of) : values(s)]), "gemini-api-key") && output.oauth_redirect == "https://agent.acme.com/api/agent/connections/google/callback"
    error_message = "Vertex AI needs no key; Google sends browsers back to the domain."
  }
}

run "nothing_is_left_to_do" {
  command = plan
}

run "one_archive_changed" {
  command = plan
  variables {
    archives = "../../../dist-run-changed"
  }
}

run "the_archives_moved" {
  command = plan
  variables {
    archives = "../../../terraform/../dist"
  }
}

run "an_hour_of_caution" {
  variables {
    side_effects = "ask"
    retention    = { days = 90, audit_days = 400 }
    audit_log    = { retention_days = 3650, locked = true }
  }
  assert {
    condition     = google_logging_project_bucket_config.audit.locked && google_logging_project_bucket_config.audit.retention_days == 3650
    error_message = "The audit's log can be locked, for ten years."
  }
  assert {
    condition     = local.settings.RETENTION == "90" && local.settings.AUDIT_RETENTION == "400"
    error_message = "Every function knows how long what it stores is kept."
  }
}
