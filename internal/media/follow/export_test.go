package follow

// Kept is how many bytes are kept of other nodes' broadcasts.
func (f *Follower) Kept() int64 { return f.kept.size() }

// Limits of what is asked of one owner, and of what is followed.
const MostAsked, Unwatched, Prompt = mostAsked, unwatched, prompt
