package main

import "slices"

// mutation takes one mechanism away. Each of its edits is a text that stands once in its file.
type mutation struct {
	name  string
	file  string
	edits []edit
	tests []test // any one of them must fail
}

type edit struct{ old, new string }

// test is a selection of one package's tests, and the flags of its own that it is run with.
type test struct{ pkg, run, flags string }

// quietly keeps rapid from leaving a file behind for each failure, and from looking long for the shortest.
const quietly = "-rapid.nofailfile -rapid.shrinktime=1s -rapid.seed=1"

// model is the model test and what stands beside it; a few hundred sequences are enough for a mechanism that is gone.
var model = []test{{"./shared/loop", "Test(Model|Scenarios|KilledAtEveryCommit|OneMoverAmongMany|OneDecisionAmongMany)/embedded", quietly + " -sequences=500"}}

// mutations are the ten of the design (reliability §3), in its order, each as this code would have it, the first once for
// each store; and those of what is deployed.
var mutations = slices.Concat([]mutation{
	{"drop the LastUpdateTime (embedded store)", "shared/store/embedded/commit.go",
		[]edit{{"data = ? WHERE path = ? AND version = ?`", "data = ? WHERE path = ? AND version <> -?`"}}, model},
	{"drop the LastUpdateTime (Firestore)", "shared/store/firestore/commit.go",
		[]edit{{"	case w.Doc.Version.IsZero():\n		return nil\n	}", "	case w.Doc.Version.IsZero():\n		return nil\n	case w.Op == store.OpUpdate:\n		return &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: true}}\n	}"}},
		[]test{{"./shared/store/firestore", "TestEmulator", quietly}}},
	{"skip ReadTime", "shared/loop/transition.go",
		[]edit{{"return m.storeTime.Add(max(0, m.Now().Sub(m.localTime))).UTC()", "return m.Now().UTC()"}}, model},
	{"ask the model again on resume", "shared/loop/advance.go",
		[]edit{{"		if a.Runnable() {\n			return stepAct, a\n", "		if a.Runnable() {\n			return stepPlan, nil\n"}}, model},
	{"publish before commit", "shared/loop/resolve.go",
		[]edit{{"	decided := false //", "	m.publish(ctx)\n	decided := false //"}, {"	if decided && m.state.End == nil {\n		m.publish(ctx)\n	}\n", "	_ = decided\n"}}, model},
	{"ack before record", "shared/api/runs.go",
		[]edit{{"	_, err = r.api.Loop.Advance(ctx, runID, nil)\n	switch {", "	r.w.WriteHeader(http.StatusNoContent)\n	_, err = r.api.Loop.Advance(ctx, runID, nil)\n	switch {"}},
		[]test{{"./shared/api", ".", ""}}},
	{"allowlist by domain", "shared/policy/policy.go",
		[]edit{{`return held[a] == ""`, `return !slices.ContainsFunc(in.Allowlist, func(e Entry) bool {
			return e.Recipient[slices.Index([]byte(e.Recipient), '@'):] == a[slices.Index([]byte(a), '@'):]
		})`}}, []test{{"./shared/policy", ".", quietly}}},
	{"drop cc and bcc from the recipients", "shared/tools/gmail/gmail.go",
		[]edit{{"return slices.Concat(a.To, a.Cc, a.Bcc)", "return slices.Concat(a.To)"}}, []test{{"./shared/tools/gmail", ".", ""}}},
	{"TTL as the only expiry", "shared/loop/resolve.go",
		[]edit{{"	case !d.now.Before(ap.ExpiresAt):\n", "	case false:\n"}}, model},
	{"accept an empty draftId", "shared/tools/gmail/draft.go",
		[]edit{{`	if d == nil || d.Id == "" {`, `	if d == nil {`}}, []test{{"./shared/tools/gmail", ".", ""}}},
	{"retry a tool without a handle on 5xx", "shared/loop/act.go",
		[]edit{{"			if !known {\n", "			if !known && false {\n"}}, model},
}, terraform)
