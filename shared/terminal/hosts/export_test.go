package hosts

// What fuzz targets ask without a store.
var (
	NormalHost     = normalHost
	CheckReadPaths = checkReadPaths
	ParseKey       = parseKey
)
