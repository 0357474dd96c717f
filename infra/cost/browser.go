package cost

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/infra"
)

// What the console of one signed-in browser asks for while it is open. TestBrowser holds the times to the console's.
const (
	pollFunction = "approvals-pending"
	pollSeconds  = 25.0 // a request that waits for news; the next one follows at once
	lookSeconds  = 15.0 // from one look at what waits to the next, where the page is visible
	pollReads    = 3    // documents: the one that is watched, the user's, and a query that finds nothing
	lookReads    = 2    // the user's, and the same query
	openHours    = 8.0  // of a day, the same hours for all browsers
)

// browsers returns the monthly cost of n open consoles without waiting approvals, by billed item.
func browsers(f infra.Function, n float64) []share {
	polls, looks := n*days*openHours*3600/pollSeconds, n*days*openHours*3600/lookSeconds
	atOnce := n * (1 + ownSeconds/lookSeconds)
	on := days * openHours / 24 * instanceSeconds(atOnce, filled*float64(f.Concurrency))
	return []share{
		{"documents read", (polls*pollReads + looks*lookReads) * readPrice.dollar},
		{"functions", on*(number(f.CPU)*cpuPrice.dollar+gib(f.Memory)*memoryPrice.dollar) +
			(polls+looks)*callPrice.dollar},
		{"log", (polls + looks) * logLineBytes * logPrice.dollar},
	}
}

var browserSizes = []float64{10, 1_000, 100_000}

func writeBrowsers(b *strings.Builder, functions map[string]infra.Function) {
	f := functions[pollFunction]
	fmt.Fprintf(b, `
## What open consoles take

A browser with the console open holds one request to `+"`%s`"+` at all times, for all of its tabs: it waits up to %v s for
news, and begins again. So a card appears at once, whichever device asked for it. A visible page also looks every %v s. US dollars a month, for so many browsers
that are open %v hours a day, while nothing waits:

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
%d instances with %d requests each serve %s browsers at once. Beyond that Cloud Run answers 429, and a console looks every %v s alone. The answer is
`+"`maxInstances`"+` of `+"`%s`"+` in infra/functions.json.
`, f.MaxInstances, f.Concurrency, grouped(float64(f.MaxInstances*f.Concurrency)), lookSeconds, pollFunction)
}
