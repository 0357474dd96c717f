package cost

// The inputs of the calculation besides the counts: prices, quotas, and assumptions about a run. Prices and quotas are
// from Google's lists in US dollars, without free tiers. For another location, model or contract, change them here and
// run go test ./infra/cost -update.

// day is the date of the prices. The pages were stored copies, because Google's site could not be reached.
const day = "2026-11-22, in stored copies of the pages (Gemini's of 2026-10-07, the load balancer's of 2026-09-20; " +
	"Cloud Armor's and Secret Manager's are from memory)"

// price is the price of one unit.
type price struct {
	name   string
	dollar float64 // for one unit
	list   string  // as the page states it
	source string
}

var (
	readPrice = price{"a document read", 0.06 / 100_000, "$0.06 per 100,000 (a multi-region such as eur3)",
		"cloud.google.com/firestore/pricing"}
	writePrice = price{"a document written", 0.18 / 100_000, "$0.18 per 100,000 (a multi-region such as eur3)",
		"cloud.google.com/firestore/pricing"}
	cpuPrice    = price{"a second of a CPU", 0.000024, "$0.000024", "cloud.google.com/run/pricing"}
	memoryPrice = price{"a second of a GiB", 0.0000025, "$0.0000025", "cloud.google.com/run/pricing"}
	callPrice   = price{"a request to a function", 0.40 / 1e6, "$0.40 per million", "cloud.google.com/run/pricing"}
	// messagePrice covers the publication and the push of a message. Each is billed as at least 1,000 bytes.
	messagePrice = price{"a message", 2 * 1000 * 40.0 / (1 << 40),
		"$40 per TiB, published and pushed, 1,000 bytes each",
		"cloud.google.com/pubsub/pricing"}
	logPrice   = price{"a byte of log", 0.50 / (1 << 30), "$0.50 per GiB", "cloud.google.com/stackdriver/pricing"}
	laterPrice = price{"a byte of log, a month beyond the first 30 days", 0.01 / (1 << 30), "$0.01 per GiB",
		"cloud.google.com/stackdriver/pricing"}
	tokenPrice = price{"a token to the model", 0.75 / 1e6, "$0.75 per million (Gemini 3.8 Flash; $1.50 from 2027)",
		"ai.google.dev/gemini-api/docs/pricing"}
	answerPrice = price{"a token of the model", 3.75 / 1e6, "$3.75 per million (Gemini 3.8 Flash; $7.50 from 2027)",
		"ai.google.dev/gemini-api/docs/pricing"}
)

var (
	edgePrice  = price{"a byte through the load balancer", 0.008 / (1 << 30), "$0.008 per GiB, in and out", balancing}
	rulePrice  = price{"an hour of the forwarding rules", 0.025, "$0.025, for the first five together", balancing}
	armorPrice = price{"a request that Cloud Armor checks", 0.75 / 1e6, "$0.75 per million", armor}
	// policyPrice is for a policy with two rules: the throttle and the default.
	policyPrice  = price{"a month of the security policy", 5 + 2*1, "$5, and $1 for each of its two rules", armor}
	kmsPrice     = price{"an operation of Cloud KMS", 0.03 / 10_000, "$0.03 per 10,000", keys}
	versionPrice = price{"a month of a version of the key", 0.06, "$0.06; each 90 days add one", keys}
	secretPrice  = price{"a month of a version of a secret", 0.06, "$0.06", "cloud.google.com/secret-manager/pricing"}
	// idlePrice is for a warm instance that has no request.
	idlePrice = price{"a second of an idle CPU or GiB", 0.0000025, "$0.0000025 each", "cloud.google.com/run/pricing"}
)

// The prices of uploaded files, for a bucket of the class Standard in the functions' region.
var (
	keptPrice    = price{"a month of a GiB in the bucket", 0.020, "$0.020 (us-central1; some regions $0.023)", buckets}
	createPrice  = price{"an object created (class A)", 0.005 / 1_000, "$0.005 per 1,000", buckets}
	fetchPrice   = price{"an object read (class B)", 0.0004 / 1_000, "$0.0004 per 1,000", buckets}
	servingPrice = price{"a GiB to users outside Google Cloud", 0.12, "$0.12, the first TiB of a month", buckets}
)

const (
	buckets   = "cloud.google.com/storage/pricing-examples"
	balancing = "cloud.google.com/load-balancing/pricing"
	armor     = "cloud.google.com/armor/pricing (Standard)"
	keys      = "cloud.google.com/kms/pricing"
)

// imagePrice is the price of stored images. Each deployed source of a function has one.
var imagePrice = price{"a month of a GB of images", 0.10, "$0.10, the first 0.5 GB free",
	"cloud.google.com/artifact-registry/pricing"}

var prices = []price{readPrice, writePrice, cpuPrice, memoryPrice, callPrice, messagePrice, logPrice, laterPrice,
	tokenPrice, answerPrice, edgePrice, rulePrice, armorPrice, policyPrice, kmsPrice, versionPrice, secretPrice,
	idlePrice,
	keptPrice, createPrice, fetchPrice, servingPrice, imagePrice}

// keptLog is the price of a byte that the audit's bucket keeps for 400 days.
var keptLog = logPrice.dollar + auditMonths*laterPrice.dollar

// The assumptions about a run and about a day.
const (
	modelSeconds  = 3.0   // one model call
	effectSeconds = 0.8   // one effect at a provider
	ownSeconds    = 0.1   // the rest of an invocation, mostly the store
	tokensIn      = 2_000 // of one model call: instructions, tools, history
	tokensOut     = 200
	logLineBytes  = 1_600   // one of our lines, and the platform's line for the same request
	edgeLineBytes = 1_200   // the load balancer's line for a request
	accessBytes   = 1_500   // an entry of Google's audit about one access to a document
	requestBytes  = 8_192   // a request of a user and its answer
	auditMonths   = 12.3    // beyond the first, in which the audit's bucket keeps our lines and Google's audit
	imageBytes    = 20e6    // of an image, without the base that all images share
	imagesKept    = 10      // of each function (the cleanup policy)
	buildsAtOnce  = 10      // terraform's -parallelism
	buildMinutes  = 3       // of one function, with its start
	keyVersions   = 4       // of the tokens' key, after a year
	sweepReads    = 8       // documents, if nothing is due: an assumption
	filled        = 0.5     // how much of an instance's concurrency the platform fills
	peak          = 5.0     // the busiest minute of a day as a multiple of the average
	days          = 30      // in a month
	fileBytes     = 4 << 20 // of an uploaded file: a PDF of about 40 pages
	fileTurns     = 3       // model calls that read the file
	fileMonths    = 12      // until its conversation is deleted (RETENTION)
	filesSaved    = 0.1     // share of the files that their users download again
)

// quota is a limit of a service, with the share that one run uses.
type quota struct {
	name   string
	limit  float64
	per    float64 // seconds
	takes  func(c counts) float64
	source string
	answer string // how to raise or avoid it
}

// gmailUnits is the quota cost of an e-mail: drafts.create 10, drafts.send 100, and messages.get 5 if it is read back.
const gmailUnits = 115

var quotas = []quota{
	{"requests to the Gemini API", 1_000, 60, func(c counts) float64 { return float64(c.modelCalls()) },
		"ai.google.dev/gemini-api/docs/rate-limits: Tier 1 as it was last listed there; AI Studio shows a " +
			"project's own",
		"`vertex_project_id` (`VERTEX_AI_PROJECT_ID`), whose throughput is shared dynamically or bought; or a " +
			"higher tier"},
	{"tokens to the Gemini API", 1_000_000, 60, func(c counts) float64 { return float64(c.modelCalls() * tokensIn) },
		"the same page", "as for requests; `MAX_TOKENS_PER_DAY` divides what there is among users"},
	{"Gmail's units, a project's in a minute", 1_200_000, 60, mailUnits,
		"developers.google.com/workspace/gmail/api/reference/quota",
		"a request for more, in the project of `GOOGLE_OAUTH_CLIENT_ID`; with `GMAIL_UNITS_PER_MINUTE`, calls beyond " +
			"it wait for their user's turn"},
	{"Gmail's units, a project's in a day", 80_000_000, 86_400, mailUnits,
		"the same page as for a minute: the threshold beyond which Google charges, at a price that it has " +
			"not published",
		"no setting: it cannot be raised, and calls beyond it still work"},
	// Each commit of a run moves the run's index entry among the due runs. There are 64 such ranges.
	{"writes to one range of Firestore's indexes", 500 * 64, 1, func(c counts) float64 { return float64(c.Writes) },
		"cloud.google.com/firestore/docs/best-practices, for 64 shards and as if all documents were in such an index",
		"more shards (`dueShard`); new databases are led up to a load by half as much again every 5 minutes"},
}

func mailUnits(c counts) float64 {
	if c.Kind == mail {
		return gmailUnits
	}
	return 0
}

// mixes are the kinds of runs that users of a profile are assumed to start. A deployment of all functions has those of
// the page: terminals, plans and MCP start runs of the same kinds.
var mixes = []struct {
	profile  string
	shares   map[string]float64 // by kind
	consoles float64            // open consoles, by run a day
}{
	{"core", map[string]float64{words: 0.5, "words after a tool that reads": 0.3, mail: 0.2}, 0},
	{"page", map[string]float64{words: 0.25, "words after a tool that reads": 0.15, mail: 0.1,
		"a message to a page's agent": 0.5}, 0.1},
}
