// Package widget holds the chat for any web page, and the automation that lets it use the page: plain modules that a
// server of static files hands out as they are.
package widget

import (
	"embed"
	"io/fs"
)

//go:embed site/*.js
var embedded embed.FS

// Files are gemini-chat.js, automation.js and the modules that they import, without a folder above them.
func Files() fs.FS {
	site, err := fs.Sub(embedded, "site")
	if err != nil {
		panic("widget: the embedded folder has another name: " + err.Error())
	}
	return site
}
