// Package widget provides the chat for any web page, the automation with which it uses the page, and the API client for
// pages and the console, as plain JavaScript modules for a static file server.
package widget

import (
	"embed"
	"io/fs"
)

//go:embed bundle
var embedded embed.FS

// Files returns gemini-chat.js, automation.js, client.js with its types, and the modules that they import, at the root.
// They are built from the modules in site.
func Files() fs.FS {
	bundle, err := fs.Sub(embedded, "bundle")
	if err != nil {
		panic("widget: the embedded folder has another name: " + err.Error())
	}
	return bundle
}
