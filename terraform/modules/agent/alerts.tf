# The alerts. Each contains its runbook, infra/runbooks/<key>.md.

locals {
  channels = [for c in google_monitoring_notification_channel.email : c.id]

  pushes       = [for s in concat(values(google_pubsub_subscription.resume), [google_pubsub_subscription.sweep]) : "\"${s.name}\""]
  receivers    = [for s in values(google_pubsub_subscription.webhook) : "\"${s.name}\""]
  dead         = [for s in [google_pubsub_subscription.dead, google_pubsub_subscription.events_dead] : "\"${s.name}\""]
  subscription = "resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id"
  method       = "protoPayload.methodName=~"
  principal    = "protoPayload.authenticationInfo.principalEmail=~"
  person       = "NOT ${local.principal}\"gserviceaccount.com$\""
  stranger     = "NOT ${local.principal}\"^(${var.prefix}-tf-apply@|service-[0-9]+@)\"" # neither a deployment nor Google itself

  # Alerts on a value, or on a ratio, that stays above a threshold.
  above = {
    dead-letter = {
      name     = "A run or a notification was given up"
      severity = "CRITICAL"
      filter   = "metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\" AND ${local.subscription}=one_of(${join(",", local.dead)})"
      value    = 0
      duration = "0s"
      aligner  = "ALIGN_MAX"
    }
    resume-lag = {
      name     = "Approved runs wait longer than five minutes"
      severity = "ERROR"
      filter   = "metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\" AND ${local.subscription}=one_of(${join(",", local.pushes)})"
      value    = 300
      duration = "300s"
      aligner  = "ALIGN_MAX"
    }
    server-errors = {
      name     = "More than one request in twenty fails"
      severity = "ERROR"
      filter   = local.faults
      share_of = local.requests
      value    = 0.05
      duration = "300s"
    }
    turned-away = {
      name     = "Requests are turned away for ten minutes"
      severity = "WARNING"
      filter   = "${local.requests} AND metric.labels.response_code=\"429\""
      value    = 0
      duration = "600s"
    }
  }
  received = length(local.receivers) == 0 ? {} : {
    events-lag = {
      name     = "Notifications wait longer than an hour"
      severity = "WARNING"
      filter   = "metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\" AND ${local.subscription}=one_of(${join(",", local.receivers)})"
      value    = 3600
      duration = "300s"
      aligner  = "ALIGN_MAX"
    }
  }
  from_outside = var.domain == null ? {} : {
    unreachable = {
      name     = "The page or the API is not reached from outside"
      severity = "CRITICAL"
      filter   = "metric.type=\"monitoring.googleapis.com/uptime_check/check_passed\" AND resource.type=\"uptime_url\" AND metric.labels.check_id=one_of(${join(",", [for u in concat(values(google_monitoring_uptime_check_config.health), values(google_monitoring_uptime_check_config.api)) : "\"${u.uptime_check_id}\""])})"
      value    = 1
      duration = "180s"
      aligner  = "ALIGN_NEXT_OLDER"
      reducer  = "REDUCE_COUNT_FALSE"
    }
  }

  # Alerts on a metric that is absent for a while.
  absent = {
    sweep-silent = {
      name     = "No sweep has succeeded for 15 minutes"
      severity = "ERROR"
      filter   = "metric.type=\"run.googleapis.com/request_count\" AND resource.type=\"cloud_run_revision\" AND resource.labels.service_name=\"${module.function["sweep"].name}\" AND metric.labels.response_code_class=\"2xx\""
      duration = "900s"
    }
  }

  # The error budget burns ten times too fast: the hour shows that it matters, and the five minutes that it continues.
  burning = {
    error-budget = {
      name     = "The error budget burns ten times too fast"
      severity = "CRITICAL"
      over     = ["3600s", "300s"]
    }
  }

  # Alerts on any occurrence in the log.
  logged = {
    secret-read = {
      name     = "A person read a secret, or used the key of tokens, decisions or passkeys"
      severity = "WARNING"
      log      = "log_id(\"cloudaudit.googleapis.com/data_access\") AND (${local.method}\"AccessSecretVersion$\" OR ${local.method}\"Decrypt$\" OR ${local.method}\"AsymmetricSign$\") AND ${local.person}"
    }
    data-changed = {
      name     = "A person changed the database"
      severity = "CRITICAL"
      log      = "protoPayload.serviceName=\"firestore.googleapis.com\" AND ${local.method}\"[.](Commit|Write|BatchWrite|CreateDocument|UpdateDocument|DeleteDocument|ImportDocuments|BulkDeleteDocuments|UpdateDatabase|DeleteDatabase|DeleteBackup|UpdateBackupSchedule|DeleteBackupSchedule)$\" AND ${local.person}"
    }
    grants-changed = {
      name     = "A role was granted or withdrawn, or a key of an identity made, outside of a deployment"
      severity = "ERROR"
      log      = "log_id(\"cloudaudit.googleapis.com/activity\") AND ${local.method}\"(?i)(setiampolicy|setiampermissions|createserviceaccountkey|uploadserviceaccountkey|(create|update)role)$\" AND ${local.stranger}"
    }
    watch-changed = {
      name     = "A sink, an alert, a log or a key was changed outside of a deployment"
      severity = "ERROR"
      log      = "log_id(\"cloudaudit.googleapis.com/activity\") AND ${local.method}\"((Update|Delete)(Sink|Bucket|BucketAsync|CmekSettings|AlertPolicy|UptimeCheckConfig)|(Create|Update|Delete)Exclusion|DeleteLog|DeleteNotificationChannel|(DestroyCryptoKey|UpdateCryptoKey|ImportCryptoKey)(Version|PrimaryVersion)?)$\" AND ${local.stranger}"
    }
    services-wait = {
      name     = "Calls wait because Gmail, Calendar, GitHub or another service refuses them for now"
      severity = "WARNING"
      log      = "resource.type=\"cloud_run_revision\" AND jsonPayload.counter=\"call_postponed\""
    }
    model-waits = {
      name     = "Runs wait because the model has no capacity"
      severity = "WARNING"
      log      = "resource.type=\"cloud_run_revision\" AND (jsonPayload.counter=\"model_postponed\" OR jsonPayload.counter=\"quota_unshared\")"
    }
    run-aside = {
      name     = "A run cannot be read or advanced and was quarantined"
      severity = "ERROR"
      log      = "resource.type=\"cloud_run_revision\" AND jsonPayload.counter=\"run_aside\""
    }
    forged-decision = {
      name     = "A decision in the database was not made by its user"
      severity = "CRITICAL"
      log      = "resource.type=\"cloud_run_revision\" AND jsonPayload.counter=\"forged_decision\""
    }
    log-failed = {
      name     = "The log of the audit was not published, or does not match the database"
      severity = "CRITICAL"
      log      = "resource.type=\"cloud_run_revision\" AND (jsonPayload.counter=\"log_failed\" OR jsonPayload.counter=\"log_ahead\")"
    }
    step-given-up = {
      name     = "A step of a run was given up, or a tool panicked"
      severity = "WARNING"
      log      = "resource.type=\"cloud_run_revision\" AND (jsonPayload.counter=\"step_given_up\" OR jsonPayload.counter=\"tool_panic\")"
    }
  }

  # Alerts on the metrics of runs, if these reach Cloud Monitoring.
  measured = {
    reviews-wait = {
      name     = "An effect has waited a day for somebody to say whether it happened"
      severity = "WARNING"
      query    = "max(max_over_time({\"countersign.approval.oldest\", \"countersign.approval.kind\"=\"review\"}[6m])) > 86400"
      duration = "0s"
    }
    log-lags = {
      name     = "The log of the audit is more than two minutes behind"
      severity = "ERROR"
      query    = "max(max_over_time({\"countersign.log.lag\"}[6m])) > 120"
      duration = "0s"
    }
    model-fails = {
      name     = "More than one request to the model in five fails"
      severity = "ERROR"
      query    = "sum(rate({\"gen_ai.client.operation.duration_count\", \"error.type\"!=\"\"}[5m])) / sum(rate({\"gen_ai.client.operation.duration_count\"}[5m])) > 0.2"
      duration = "300s"
    }
  }

  alerts = merge(local.above, local.received, local.from_outside, local.absent, local.burning, local.logged, var.metrics ? local.measured : {})
}

resource "google_monitoring_notification_channel" "email" {
  for_each = var.alert_emails

  project      = var.project_id
  display_name = each.value
  type         = "email"
  labels = {
    email_address = each.value
  }
}

resource "google_monitoring_alert_policy" "this" {
  for_each = local.alerts

  project               = var.project_id
  display_name          = "[${var.environment}] ${each.value.name}"
  combiner              = "AND"
  severity              = each.value.severity
  notification_channels = local.channels
  user_labels           = local.labels

  dynamic "conditions" {
    for_each = can(each.value.value) ? [each.value] : []
    content {
      display_name = each.value.name
      condition_threshold {
        filter             = conditions.value.filter
        denominator_filter = try(conditions.value.share_of, null)
        comparison         = "COMPARISON_GT"
        threshold_value    = conditions.value.value
        duration           = conditions.value.duration
        aggregations {
          alignment_period     = "60s"
          per_series_aligner   = try(conditions.value.aligner, "ALIGN_RATE")
          cross_series_reducer = try(conditions.value.reducer, "REDUCE_SUM")
        }
        dynamic "denominator_aggregations" {
          for_each = can(conditions.value.share_of) ? [1] : []
          content {
            alignment_period     = "60s"
            per_series_aligner   = "ALIGN_RATE"
            cross_series_reducer = "REDUCE_SUM"
          }
        }
      }
    }
  }
  dynamic "conditions" {
    for_each = contains(keys(local.absent), each.key) ? [each.value] : []
    content {
      display_name = each.value.name
      condition_absent {
        filter   = conditions.value.filter
        duration = conditions.value.duration
        aggregations {
          alignment_period     = "60s"
          per_series_aligner   = "ALIGN_RATE"
          cross_series_reducer = "REDUCE_SUM"
        }
      }
    }
  }
  dynamic "conditions" {
    for_each = try(each.value.over, [])
    content {
      display_name = "over ${conditions.value}"
      condition_threshold {
        filter          = "select_slo_burn_rate(\"${google_monitoring_slo.availability.name}\", \"${conditions.value}\")"
        comparison      = "COMPARISON_GT"
        threshold_value = 10
        duration        = "0s"
      }
    }
  }
  dynamic "conditions" {
    for_each = can(each.value.log) ? [each.value.log] : []
    content {
      display_name = each.value.name
      condition_matched_log {
        filter = conditions.value
      }
    }
  }

  dynamic "conditions" {
    for_each = can(each.value.query) ? [each.value] : []
    content {
      display_name = each.value.name
      condition_prometheus_query_language {
        query                     = conditions.value.query
        duration                  = conditions.value.duration
        evaluation_interval       = "60s"
        disable_metric_validation = true # no value exists yet
      }
    }
  }

  # Google requires a rate limit of notifications for alerts on a log.
  dynamic "alert_strategy" {
    for_each = can(each.value.log) ? [1] : []
    content {
      notification_rate_limit {
        period = "3600s"
      }
    }
  }

  documentation {
    content   = replace(file("${local.infra}/runbooks/${each.key}.md"), "/\\bagent-/", "${var.prefix}-")
    mime_type = "text/markdown"
  }
}
