package api

import (
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/control/upload"
	"millrace/internal/control/webhook"
)

// EventTypes are the types of all events that can happen.
func EventTypes() []string {
	return []string{
		asset.EventCreated, asset.EventReady, asset.EventErrored, asset.EventUpdated, asset.EventDeleted,
		asset.EventLiveCompleted,
		asset.EventNonStandard, asset.EventWarning,
		asset.EventTrackCreated, asset.EventTrackReady, asset.EventTrackErrored, asset.EventTrackDeleted,
		asset.EventStaticCreated, asset.EventStaticReady, asset.EventStaticErrored, asset.EventStaticDeleted,
		asset.EventStaticSkipped,
		asset.EventMP4Preparing, asset.EventMP4Ready, asset.EventMP4Deleted, asset.EventMP4Errored,
		asset.EventMasterPreparing, asset.EventMasterReady, asset.EventMasterDeleted, asset.EventMasterErrored,
		upload.EventCreated, upload.EventAssetCreated, upload.EventCancelled, upload.EventErrored,
		live.EventCreated, live.EventConnected, live.EventRecording, live.EventActive, live.EventDisconnected,
		live.EventIdle, live.EventUpdated,
		live.EventEnabled, live.EventDisabled, live.EventDeleted, live.EventWarning,
		live.EventTargetCreated, live.EventTargetDeleted, live.EventTarget(live.TargetStatusIdle),
		live.EventTarget(live.TargetStatusStarting),
		live.EventTarget(live.TargetStatusBroadcasting), live.EventTarget(live.TargetStatusErrored),
		webhook.EventTest, webhook.EventDisabled,
	}
}
