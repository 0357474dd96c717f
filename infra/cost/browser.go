package cost

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/infra"
)

// The requests of one signed-in browser with an open console. TestBrowser compares the times with those in the console.
const (
	pollFunction = "approvals-pending"
	pollSeconds  = 25.0 // a long poll; the next one follows at once
	lookSeconds  = 15.0 // between two requests for pending approvals, while the page is visible
	pollReads    = 3    // documents: the watched one, the user's, and a query without results
	lookReads    = 2    // documents: the user's, and the same query
	openHours    = 8.0  // a day, the same hours for all browsers
)

// browsers returns the monthly cost of n open consoles without any activity, by item.
func browsers(f infra.Function, n float64) []share {
	polls, looks := n*days*openHours*3600/pollSeconds, n*days*openHours*3600/lookSeconds
	atOnce := n * (1 + ownSeconds/lookSeconds)
	on := days * openHours / 24 * instanceSeconds(atOnce, filled*float64(f.Concurrency))
	return []share{
		{"documents read", (polls*pollReads + looks*lookReads) * readPrice.dollar},
		{"functions", on*(number(f.CPU)*cpuPrice.dollar+gib(f.Memory)*memoryPrice.dollar) +
			(polls+looks)*callPrice.dollar},
		{"log", (polls + looks) * logLineBytes * keptLog},
		{"log of accesses to data", (polls*pollReads + looks*lookReads) * accessBytes * keptLog},
		{"load balancer, its log, Cloud Armor", (polls + looks) *
			(requestBytes*edgePrice.dollar + edgeLineBytes*logPrice.dollar + armorPrice.dollar)},
	}
}

var browserSizes = []float64{10, 1_000, 100_000}

func writeBrowsers(b *strings.Builder, functions map[string]infra.Function) {
	f := functions[pollFunction]
	fmt.Fprintf(b, `
## What open consoles take

A browser with an open console always has one request to `+"`%s`"+` open, for all of its tabs. The request waits up to %v s for
events, and is then repeated, so a card appears at once, whichever device requested it. A visible page also polls every %v s. The table has US dollars a month for browsers
that are open %v hours a day, without pending approvals:

| |`, pollFunction, pollSeconds, lookSeconds, openHours)
	for _, n := range browserSizes {
		fmt.Fprintf(b, " %s browsers |", grouped(n))
	}
	b.WriteString("\n| --- | --- | --- | --- |\n")
	for i, s := range browsers(f, 0) {
		fmt.Fprintf(b, "| %s |", s.what)
		for _, n := range browserSizes {
			fmt.Fprintf(b, " %s |", grouped(browsers(f, n)[i].dollar))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, `
%d instances with %d requests each serve %s browsers at once. Beyond that, Cloud Run answers 429, and a console only polls every %v s. To raise this limit, change
`+"`maxInstances`"+` of `+"`%s`"+` in infra/functions.json.
`, f.MaxInstances, f.Concurrency, grouped(float64(f.MaxInstances*f.Concurrency)), lookSeconds, pollFunction)
}
