// Package tools groups what a model can call.
//   - gmail, calendar, github and web are tools in accounts and on the web; fetch gets the page of a URL for web.
//   - command runs commands on hosts, docker runs scripts in containers; container says whose a container is and what
//     it may use, and its package docker speaks to the engine.
//   - action reads the operator's own actions from files.
//   - mcpfile reads the operator's list of MCP servers, mcpclient makes tools of their offers, and mcptools follows
//     them as they come and go.
//   - skill reads skills in the open format.
package tools
