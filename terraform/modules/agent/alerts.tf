# What somebody is woken for. Each alert carries its runbook, infra/runbooks/<its key>.md.

locals {
  channels = [for c in google_monitoring_notification_channel.email : c.id]

  alerts = merge({
    dead-letter = {
      name = "A run was given up", severity = "CRITICAL"
      above = { value = 0, duration = "0s", aligner = "ALIGN_MAX"
      filter = "metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\" AND resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=\"${google_pubsub_subscription.dead.name}\"" }
    }
    resume-lag = {
      name = "Approved runs wait longer than five minutes", severity = "ERROR"
      above = { value = 300, duration = "300s", aligner = "ALIGN_MAX"
      filter = "metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\" AND resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=\"${google_pubsub_subscription.resume.name}\"" }
    }
    server-errors = {
      name  = "More than one request in twenty fails", severity = "ERROR"
      above = { value = 0.05, duration = "300s", aligner = "ALIGN_RATE", filter = local.faults, of = local.requests }
    }
    sweep-silent = {
      name = "No sweep has succeeded for 15 minutes", severity = "ERROR"
      absent = { duration = "900s"
      filter = "metric.type=\"run.googleapis.com/request_count\" AND resource.type=\"cloud_run_revision\" AND resource.labels.service_name=\"${module.function["sweep"].name}\" AND metric.labels.response_code_class=\"2xx\"" }
    }
    instances-at-limit = {
      name = "A function runs as many instances as it may", severity = "WARNING"
      above = { value = 0, duration = "600s", aligner = "ALIGN_RATE"
      filter = "metric.type=\"run.googleapis.com/request_count\" AND resource.type=\"cloud_run_revision\" AND resource.labels.service_name=monitoring.regex.full_match(\"${local.services}\") AND metric.labels.response_code=\"429\"" }
    }
    error-budget = {
      name = "The error budget burns ten times too fast", severity = "CRITICAL"
      burn = ["3600s", "300s"] # the hour says that it matters, the five minutes that it still goes on
    }
    secret-read = {
      name = "A person read a secret or used the tokens' key", severity = "WARNING"
      log  = "log_id(\"cloudaudit.googleapis.com/data_access\") AND (protoPayload.methodName=~\"AccessSecretVersion$\" OR protoPayload.methodName=~\"KeyManagementService.Decrypt$\") AND NOT protoPayload.authenticationInfo.principalEmail=~\"gserviceaccount.com$\""
    }
    }, var.domain == null ? {} : {
    unreachable = {
      name = "The page is not reached from outside", severity = "CRITICAL"
      above = { value = 1, duration = "180s", aligner = "ALIGN_NEXT_OLDER", reducer = "REDUCE_COUNT_FALSE"
      filter = "metric.type=\"monitoring.googleapis.com/uptime_check/check_passed\" AND resource.type=\"uptime_url\" AND metric.labels.check_id=\"${google_monitoring_uptime_check_config.health["this"].uptime_check_id}\"" }
    }
  })
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
    for_each = can(each.value.above) ? [each.value.above] : []
    content {
      display_name = each.value.name
      condition_threshold {
        filter             = conditions.value.filter
        denominator_filter = try(conditions.value.of, null)
        comparison         = "COMPARISON_GT"
        threshold_value    = conditions.value.value
        duration           = conditions.value.duration
        aggregations {
          alignment_period     = "60s"
          per_series_aligner   = conditions.value.aligner
          cross_series_reducer = try(conditions.value.reducer, "REDUCE_SUM")
        }
        dynamic "denominator_aggregations" {
          for_each = can(conditions.value.of) ? [1] : []
          content {
            alignment_period     = "60s"
            per_series_aligner   = conditions.value.aligner
            cross_series_reducer = "REDUCE_SUM"
          }
        }
      }
    }
  }
  dynamic "conditions" {
    for_each = can(each.value.absent) ? [each.value.absent] : []
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
    for_each = try(each.value.burn, [])
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

  # Google takes an alert on a log only with a limit of how often it tells.
  dynamic "alert_strategy" {
    for_each = can(each.value.log) ? [1] : []
    content {
      notification_rate_limit {
        period = "3600s"
      }
    }
  }

  documentation {
    content   = file("${local.infra}/runbooks/${each.key}.md")
    mime_type = "text/markdown"
  }
}
