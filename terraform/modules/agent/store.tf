# The database with its indexes, expiry and backups. infra/firestore-indexes.json has the form of firebase.json's indexes.

locals {
  firestore = jsondecode(file("${local.infra}/firestore-indexes.json"))
  indexes   = { for x in local.firestore.indexes : join("-", concat([x.collectionGroup], [for f in x.fields : f.fieldPath])) => x }
  overrides = { for o in local.firestore.fieldOverrides : "${o.collectionGroup}-${o.fieldPath}" => o }
}

resource "google_firestore_database" "agent" {
  project                           = var.project_id
  name                              = coalesce(var.firestore_database, "${var.prefix}-store")
  location_id                       = var.firestore_location
  type                              = "FIRESTORE_NATIVE"
  concurrency_mode                  = "OPTIMISTIC"
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_ENABLED"
  delete_protection_state           = var.deletion_protection ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"
  deletion_policy                   = var.deletion_protection ? "ABANDON" : "DELETE"
}

resource "google_firestore_index" "this" {
  for_each = local.indexes

  project     = var.project_id
  database    = google_firestore_database.agent.name
  collection  = each.value.collectionGroup
  query_scope = each.value.queryScope

  dynamic "fields" {
    for_each = each.value.fields
    content {
      field_path = fields.value.fieldPath
      order      = fields.value.order
    }
  }
}

# Fields that no query uses have no index: they are large, or would be hot. Documents with a ttl field are deleted some time after
# the time in that field, usually within a day.
resource "google_firestore_field" "this" {
  for_each = local.overrides

  project    = var.project_id
  database   = google_firestore_database.agent.name
  collection = each.value.collectionGroup
  field      = each.value.fieldPath

  index_config {}
  dynamic "ttl_config" {
    for_each = try(each.value.ttl, false) ? [1] : []
    content {}
  }
}

resource "google_firestore_backup_schedule" "daily" {
  project   = var.project_id
  database  = google_firestore_database.agent.name
  retention = "604800s"
  daily_recurrence {}
}

resource "google_firestore_backup_schedule" "weekly" {
  project   = var.project_id
  database  = google_firestore_database.agent.name
  retention = "8467200s" # 14 weeks, the maximum
  weekly_recurrence {
    day = "SUNDAY"
  }
}
