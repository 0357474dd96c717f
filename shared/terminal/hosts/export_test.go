package hosts

// Functions for fuzz targets, which have no store.
var (
	NormalHost     = normalHost
	CheckReadPaths = checkReadPaths
	ParseKey       = parseKey
)
